// Additive codes: four bits name one of the 16 vectors of a codebook, and a code stands for the sum s of the vectors that it names. A row x
// gets the code with a small error |x - s|^2 + along (x'(x - s))^2, which a local search looks for.
#pragma once
#include <cstddef>
#include <cstdint>

#include "workers.hpp"

namespace rankbits {

constexpr size_t ENTRIES = 16;  // of a codebook

struct Change {
    uint16_t book, entry;
};

// How many codebooks, what their vectors have in common, and how the search goes on from a code that no single change makes better: each
// restart sets some entries of the best code so far, the same for every row, and sweeps again.
struct Codebooks {
    size_t n;                // at most 1024
    const double* products;  // (16 n, 16 n): of each vector with each
    const Change* changes;   // (n_restarts, n_changes)
    size_t n_restarts, n_changes, n_sweeps;
    double along;
};

struct AdditiveRow {
    const double* shares;  // 16 n: products of the row with each vector
    double square;         // of its length
};

// Loops of one instruction set; all of them choose the same codes.
struct AdditiveKernels {
    // entries has one number below 16 for each codebook: where the search starts, and then the best code.
    void (*improve)(const Codebooks& books, const AdditiveRow& row, double* room, uint8_t* entries);
    size_t (*room)(size_t n);  // numbers that improve() needs for n codebooks
};

const AdditiveKernels& portable_additive_kernels();
const AdditiveKernels* avx2_additive_kernels();  // null where the compiler or the CPU has no AVX2

// entries (rows, n) of rows with shares (rows, 16 n) and squares (rows). False if stopped.
bool improve_codes(const Codebooks& books, const double* shares, const double* squares, size_t n_rows, uint8_t* entries, Workers& workers);

}  // namespace rankbits
