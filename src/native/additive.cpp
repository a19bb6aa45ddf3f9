#include "additive.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t ROWS_A_SHARE = 16;

const AdditiveKernels& additive_kernels() {
    const AdditiveKernels* avx2 = avx2_additive_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_additive_kernels();
}

}  // namespace

bool improve_codes(const Codebooks& books, const double* shares, const double* squares, size_t n_rows, uint8_t* entries, Workers& workers) {
    const AdditiveKernels& run = additive_kernels();
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        std::vector<double> room(run.room(books.n));
        for (size_t first; (first = next.fetch_add(ROWS_A_SHARE)) < n_rows;) {
            if (workers.stopped(w)) return;
            for (size_t i = first; i < std::min(first + ROWS_A_SHARE, n_rows); ++i) {
                run.improve(books, {shares + ENTRIES * books.n * i, squares[i]}, room.data(), entries + books.n * i);
            }
        }
    });
}

}  // namespace rankbits
