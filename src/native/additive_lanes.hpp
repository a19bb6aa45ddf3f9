// The local search for one row, compiled once for each instruction set. The 16 entries of a codebook lie side by side in vectors of the
// compiler, whose lanes do the same operations under every instruction set, and nothing is contracted into multiply-adds.
//
// pull[m][j] is the product of vector j of codebook m with the sum s. Choosing one entry anew takes 16 errors; only if it changes, the
// products of two vectors with all others are added, 16 n of them. So a sweep that changes little costs little.
#pragma once
#include <algorithm>
#include <cstring>

#include "additive.hpp"

namespace rankbits {
namespace {

constexpr size_t LANES = 4;
using Doubles = double __attribute__((vector_size(32)));

inline Doubles load(const double* p) {
    Doubles numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return numbers;
}

inline void store(double* p, Doubles numbers) { std::memcpy(p, &numbers, sizeof(numbers)); }

// A code, and what its changes are decided by.
struct Code {
    double* pull;      // (n, 16)
    uint8_t* entries;  // n
    double share;      // x's

    void copy(const Code& other, size_t n) {
        std::copy(other.pull, other.pull + ENTRIES * n, pull);
        std::copy(other.entries, other.entries + n, entries);
        share = other.share;
    }
};

const double* products_of(const Codebooks& books, size_t book, size_t entry) {
    return books.products + (ENTRIES * book + entry) * ENTRIES * books.n;
}

void begin(const Codebooks& books, const AdditiveRow& row, Code& code) {
    std::fill(code.pull, code.pull + ENTRIES * books.n, 0.0);
    code.share = 0.0;
    for (size_t book = 0; book < books.n; ++book) {
        const double* products = products_of(books, book, code.entries[book]);
        for (size_t i = 0; i < ENTRIES * books.n; i += LANES) store(code.pull + i, load(code.pull + i) + load(products + i));
        code.share += row.shares[ENTRIES * book + code.entries[book]];
    }
}

void change(const Codebooks& books, const AdditiveRow& row, size_t book, size_t entry, Code& code) {
    const double *before = products_of(books, book, code.entries[book]), *after = products_of(books, book, entry);
    for (size_t i = 0; i < ENTRIES * books.n; i += LANES) store(code.pull + i, load(code.pull + i) + (load(after + i) - load(before + i)));
    code.share += row.shares[ENTRIES * book + entry] - row.shares[ENTRIES * book + code.entries[book]];
    code.entries[book] = static_cast<uint8_t>(entry);
}

// The entry with the smallest error, given those of the other codebooks; the first of equal ones.
size_t best_entry(const Codebooks& books, const AdditiveRow& row, size_t book, const Code& code) {
    const double *own = products_of(books, book, code.entries[book]) + ENTRIES * book, *pull = code.pull + ENTRIES * book,
                 *shares = row.shares + ENTRIES * book;
    const double rest = row.square - (code.share - shares[code.entries[book]]);  // x'(x - s) without this codebook
    double squares[ENTRIES], errors[ENTRIES];
    for (size_t j = 0; j < ENTRIES; ++j) squares[j] = products_of(books, book, j)[ENTRIES * book + j];
    for (size_t j = 0; j < ENTRIES; j += LANES) {
        const Doubles share = load(shares + j), left = rest - share;
        const Doubles others = load(pull + j) - load(own + j);
        store(errors + j, load(squares + j) + 2 * (others - share) + books.along * left * left);
    }
    return static_cast<size_t>(std::min_element(errors, errors + ENTRIES) - errors);
}

void sweep(const Codebooks& books, const AdditiveRow& row, Code& code) {
    bool is_changed = true;
    for (size_t i = 0; is_changed && i < books.n_sweeps; ++i) {
        is_changed = false;
        for (size_t book = 0; book < books.n; ++book) {
            const size_t entry = best_entry(books, row, book, code);
            if (entry == code.entries[book]) continue;
            change(books, row, book, entry, code);
            is_changed = true;
        }
    }
}

// The error, less |x|^2, which all codes share.
double error_of(const Codebooks& books, const AdditiveRow& row, const Code& code) {
    double square = 0.0;
    for (size_t book = 0; book < books.n; ++book) square += code.pull[ENTRIES * book + code.entries[book]];
    const double left = row.square - code.share;
    return square - 2 * code.share + books.along * left * left;
}

size_t room_for(size_t n) { return 2 * ENTRIES * n; }

void improve(const Codebooks& books, const AdditiveRow& row, double* room, uint8_t* entries) {
    uint8_t tried_entries[1024];
    Code best{room, entries, 0.0}, tried{room + ENTRIES * books.n, tried_entries, 0.0};
    begin(books, row, best);
    sweep(books, row, best);
    double least = error_of(books, row, best);
    for (size_t restart = 0; restart < books.n_restarts; ++restart) {
        tried.copy(best, books.n);
        for (size_t i = 0; i < books.n_changes; ++i) {
            const Change& to = books.changes[restart * books.n_changes + i];
            change(books, row, to.book, to.entry, tried);
        }
        sweep(books, row, tried);
        const double error = error_of(books, row, tried);
        if (error < least) {
            best.copy(tried, books.n);
            least = error;
        }
    }
}

}  // namespace
}  // namespace rankbits
