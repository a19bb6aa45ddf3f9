// The scan, whatever a query is and however it scores items: blocks of queries go over all planes. A sample of the items first tells each
// query how good its k-th item is at least, and again in the course of the scan, together with what has been seen by then; a guess that was too
// strict is noticed at the end and put right.
//
// A Search, which scan.cpp and real.cpp define, has
//   Best                             what is kept of the items that one query has been shown: size, is_full, offer_all, tighten
//   Block                            queries that share tiles: size, n_tile, scan_tile
//   MAX_BLOCK, STEPS                 queries of a block at most, and steps of a scan, between which limits are tightened
//   k()                              items that a query needs; 0 for all within a limit
//   block(numbers, n)                the Block of the queries of these numbers
//   begin(best, of_sample)           before the first item, with the limit of the items of a sample or, where that is null, without one
//   begin_sample(rank, of_sample)    the same for a sample, of which the best `rank` items are to be kept
#pragma once
#include <atomic>
#include <numeric>

#include "sample.hpp"

namespace rankbits {

// Shows all groups to a block of queries whose guesses came from the sample; false if it was stopped.
template <class Search, class Stopped>
bool scan_in_steps(const Planes& planes, typename Search::Block& block, const Sample& sample, const typename Search::Best* of_sample,
                   typename Search::Best* best, Stopped stopped) {
    const size_t n_groups = planes.n_groups(), n_tile = block.n_tile(), n_step = (n_groups / Search::STEPS / n_tile + 1) * n_tile;
    for (size_t g = 0; g < n_groups; g += n_step) {
        const Outlook outlook = sample.outlook(g);
        for (size_t q = 0; g > 0 && q < block.size(); ++q) best[q].tighten(outlook, of_sample[q]);
        if (!scan_groups(planes, g, std::min(g + n_step, n_groups), g > 0 ? n_tile : 1, block, best, stopped)) return false;
    }
    return true;
}

// One round over the queries of these numbers, with a guess from the sample or, where it is null, without. done(number, best) comes once
// for each query, from any thread, as soon as its block is through.
template <class Search, class Done>
bool scan_round(const Planes& planes, const Search& search, const std::vector<size_t>& numbers, const Sample* sample, Workers& workers,
                Done done) {
    using Best = typename Search::Best;
    const size_t n_queries = numbers.size(), share = (n_queries + workers.size() - 1) / workers.size();
    const size_t n_block = std::min(Search::MAX_BLOCK, share + share % 2), n_blocks = (n_queries + n_block - 1) / n_block;
    const size_t n_parts = n_blocks < workers.size() ? workers.size() : 1, n_groups = planes.n_groups();
    std::vector<Best> of_parts(n_parts > 1 ? n_queries * n_parts : 0);  // few queries: threads share the planes instead
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        std::vector<Best> best(n_block), of_sample(sample ? n_block : 0);  // whose memory serves all blocks
        const auto stopped = [&] { return workers.stopped(w); };
        for (size_t task; (task = next++) < n_blocks * n_parts;) {
            const size_t first = task / n_parts * n_block, part = task % n_parts, n = std::min(n_block, n_queries - first);
            typename Search::Block block = search.block(numbers.data() + first, n);
            if (sample) {
                sample->guess(search, block, of_sample.data(), best.data());
            } else {
                for (size_t q = 0; q < n; ++q) search.begin(best[q], nullptr);
            }
            const bool is_running =  // a part knows nothing of what the others see, so that it has no outlook
                sample && n_parts == 1
                    ? scan_in_steps<Search>(planes, block, *sample, of_sample.data(), best.data(), stopped)
                    : scan_groups(planes, part * n_groups / n_parts, (part + 1) * n_groups / n_parts, 1, block, best.data(), stopped);
            if (!is_running) return;
            for (size_t q = 0; q < n; ++q) {
                if (n_parts > 1) {
                    of_parts[(first + q) * n_parts + part] = std::move(best[q]);
                } else {
                    done(numbers[first + q], best[q]);
                }
            }
        }
    });
    for (size_t q = 0; is_finished && n_parts > 1 && q < n_queries; ++q) {
        for (size_t part = 1; part < n_parts; ++part) of_parts[q * n_parts].offer_all(of_parts[q * n_parts + part]);
        done(numbers[q], of_parts[q * n_parts]);
    }
    return is_finished;
}

// put(number, best) comes once for each of n_queries queries, from any thread; n_there is the number of items that may be found. False if
// stopped.
template <class Search, class Put>
bool scan_all(const Planes& planes, const Search& search, size_t n_queries, size_t n_there, Workers& workers, Put put) {
    if (n_queries == 0) return true;
    std::vector<size_t> numbers(n_queries);
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    if (search.k() == 0 || !Sample::is_worthwhile(planes)) return scan_round(planes, search, numbers, nullptr, workers, put);
    const Sample sample(planes, n_there, n_queries);
    const size_t n_needed = std::min(search.k(), n_there);
    std::vector<uint8_t> is_short(n_queries, 0);  // where the guess was too strict
    const bool is_finished = scan_round(planes, search, numbers, &sample, workers, [&](size_t q, typename Search::Best& best) {
        is_short[q] = best.size() < n_needed;
        if (!is_short[q]) put(q, best);
    });
    std::erase_if(numbers, [&](size_t q) { return !is_short[q]; });
    return is_finished && (numbers.empty() || scan_round(planes, search, numbers, nullptr, workers, put));
}

}  // namespace rankbits
