// The scan: blocks of queries go over all planes. A sample of the items first tells each query how far its k-th item may be, and again in
// the course of the scan, together with what has been seen by then; a guess that was too near is noticed at the end and put right.
#include "scan.hpp"

#include <atomic>

#include "dispatch.hpp"
#include "sample.hpp"

namespace rankbits {
namespace {

constexpr size_t BLOCK = 256;  // queries
constexpr size_t STEPS = 32;   // of a scan, between which limits are lowered

size_t n_allowed(const Planes& planes) {
    if (!planes.allowed) return planes.n;
    size_t n = 0;
    for (size_t g = 0; g < planes.n_groups(); ++g) n += static_cast<size_t>(std::popcount(planes.allowed[g]));
    return n;
}

// Shows all groups to a block of queries whose guesses came from the sample; false if it was stopped.
template <class Stopped>
bool scan_in_steps(const Planes& planes, Block& block, const Sample& sample, const Nearest* near_in_sample, Nearest* nearest,
                   Stopped stopped) {
    const size_t n_groups = planes.n_groups(), n_tile = block.n_tile(), n_step = (n_groups / STEPS / n_tile + 1) * n_tile;
    for (size_t g = 0; g < n_groups; g += n_step) {
        for (size_t q = 0; g > 0 && q < block.size(); ++q) sample.lower_limit(g, near_in_sample[q], nearest[q]);
        if (!block.scan(planes, g, std::min(g + n_step, n_groups), n_tile, nearest, stopped)) return false;
    }
    return true;
}

// One round over some queries, with a guess from the sample or, where it is null, without. done(q, nearest) comes once for each query,
// from any thread, as soon as its block is through.
template <class Done>
bool scan_round(const Planes& planes, const std::vector<const uint8_t*>& codes, const Wanted& wanted, const Sample* sample, Workers& workers,
                Done done) {
    const size_t share = (codes.size() + workers.size() - 1) / workers.size(), n_block = std::min(BLOCK, share + share % 2);
    const size_t n_blocks = (codes.size() + n_block - 1) / n_block;
    const size_t n_parts = n_blocks < workers.size() ? workers.size() : 1, n_groups = planes.n_groups();
    std::vector<Nearest> of_parts(n_parts > 1 ? codes.size() * n_parts : 0);  // few queries: threads share the planes instead
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        std::vector<Nearest> of_block(n_block), of_sample(sample ? n_block : 0);  // whose memory serves all blocks
        const auto stopped = [&] { return workers.stopped(w); };
        for (size_t task; (task = next++) < n_blocks * n_parts;) {
            const size_t first = task / n_parts * n_block, part = task % n_parts, n = std::min(n_block, codes.size() - first);
            Nearest* const nearest = of_block.data();
            Block block(codes.data() + first, n, planes.width);
            bool is_running;
            if (sample) {
                sample->guess(block, wanted, of_sample.data(), nearest);
            } else {
                for (size_t q = 0; q < n; ++q) nearest[q].begin(wanted, static_cast<int>(planes.n_bits), planes.n_bits, Rows::ascending);
            }
            if (sample && n_parts == 1) {  // a part knows nothing of what the others see
                is_running = scan_in_steps(planes, block, *sample, of_sample.data(), nearest, stopped);
            } else {
                is_running = block.scan(planes, part * n_groups / n_parts, (part + 1) * n_groups / n_parts, 1, nearest, stopped);
            }
            if (!is_running) return;
            for (size_t q = 0; q < n; ++q) {
                if (n_parts > 1) {
                    of_parts[(first + q) * n_parts + part] = std::move(nearest[q]);
                } else {
                    done(first + q, nearest[q]);
                }
            }
        }
    });
    for (size_t q = 0; is_finished && n_parts > 1 && q < codes.size(); ++q) {
        for (size_t part = 1; part < n_parts; ++part) of_parts[q * n_parts].offer_all(of_parts[q * n_parts + part]);
        done(q, of_parts[q * n_parts]);
    }
    return is_finished;
}

}  // namespace

const NearKernels& near_kernels() {
    const NearKernels* avx2 = avx2_near_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_near_kernels();
}

bool scan(const Planes& planes, const uint8_t* queries, const Wanted& wanted, Results& results, Workers& workers) {
    const size_t n_queries = results.n_queries(), n_there = n_allowed(planes);
    if (n_queries == 0) return true;
    if (wanted.k > 0 && !wanted.is_complete && wanted.radius >= static_cast<int>(planes.n_bits)) results.expect(std::min(wanted.k, n_there));
    std::vector<const uint8_t*> codes(n_queries);
    for (size_t q = 0; q < n_queries; ++q) codes[q] = queries + q * planes.width;
    const bool is_sampled = wanted.k > 0 && Sample::is_worthwhile(planes);
    if (!is_sampled) {
        return scan_round(planes, codes, wanted, nullptr, workers, [&](size_t q, Nearest& nearest) { results.put(q, nearest); });
    }
    const Sample sample(planes, n_there, n_queries);
    std::vector<uint8_t> is_short(n_queries, 0);  // where the guess was too near
    const bool is_finished = scan_round(planes, codes, wanted, &sample, workers, [&](size_t q, Nearest& nearest) {
        is_short[q] = nearest.size() < std::min(wanted.k, n_there);
        if (!is_short[q]) results.put(q, nearest);
    });
    std::vector<size_t> again;
    for (size_t q = 0; q < n_queries; ++q) {
        if (is_short[q]) again.push_back(q);
    }
    if (!is_finished || again.empty()) return is_finished;
    std::vector<const uint8_t*> codes_again;
    for (const size_t q : again) codes_again.push_back(codes[q]);
    return scan_round(planes, codes_again, wanted, nullptr, workers, [&](size_t i, Nearest& nearest) { results.put(again[i], nearest); });
}

}  // namespace rankbits
