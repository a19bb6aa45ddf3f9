// Sizes, checked once where arrays come in: what a kernel reads or writes behind a pointer is as long as it takes it to be.
// A mismatch is a mistake of the Python caller, and a ValueError of one sentence.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "count.hpp"

namespace rankbits {

inline void require(bool is_right, const std::string& sentence) {
    if (!is_right) throw std::invalid_argument(sentence);
}

inline std::string text_of(const std::vector<size_t>& shape) {
    std::string text = "(";
    for (size_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

template <class Array>
void require_shape(const std::string& name, const Array& array, std::initializer_list<size_t> expected) {
    std::vector<size_t> shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(array.shape(axis));
    if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end()))
        throw std::invalid_argument(name + " must have shape " + text_of(expected) + ", got " + text_of(shape));
}

constexpr size_t MAX_WIDTH = 512;  // bytes of a code: 4,096 bits

// Two sets of codes of one width that the kernels take.
inline void require_codes(const Codes& queries, const Codes& items) {
    require(queries.width == items.width, "queries and items must have the same width, got " + std::to_string(queries.width) + " and " +
                                              std::to_string(items.width) + " bytes");
    require(queries.width >= 1 && queries.width <= MAX_WIDTH, "codes must be 1 to 512 bytes wide, got " + std::to_string(queries.width));
    require(std::max(queries.n, items.n) < UINT32_MAX, "codes must be fewer than 2^32 - 1 at a time");
}

// Counts of those codes: a row for each query, no more bins than the codes have distances, at least one level.
template <class Array>
void require_counts(const Array& counts, const Codes& queries) {
    require_shape("counts", counts, {queries.n, counts.shape(1), counts.shape(2)});
    require(counts.shape(1) >= 1 && counts.shape(1) <= bins_of_bytes(queries.width),
            "counts must have 1 to " + std::to_string(bins_of_bytes(queries.width)) + " bins, got " + std::to_string(counts.shape(1)));
    require(counts.shape(2) >= 1 && counts.shape(2) <= 65536, "counts must have 1 to 65536 levels, got " + std::to_string(counts.shape(2)));
}

// Every value at least `low` and below `end`.
template <class T>
void require_range(const std::string& name, const T* values, size_t n, int64_t low, int64_t end) {
    if (n == 0) return;
    T smallest = values[0], largest = values[0];  // in two loops of a form that compilers turn into vectors
    for (size_t i = 0; std::is_signed_v<T> && i < n; ++i) smallest = values[i] < smallest ? values[i] : smallest;
    for (size_t i = 0; i < n; ++i) largest = values[i] > largest ? values[i] : largest;
    if (std::is_unsigned_v<T>) smallest = 0;
    require(smallest >= low, name + " must be at least " + std::to_string(low) + ", got " + std::to_string(smallest));
    require(largest < end, name + " must be below " + std::to_string(end) + ", got " + std::to_string(largest));
}

// Starts of n runs within an array of `size`: ascending, and inside it.
inline void require_starts(const std::string& name, const int64_t* starts, size_t n, size_t size) {
    require(starts[0] >= 0 && std::is_sorted(starts, starts + n + 1) && starts[n] <= static_cast<int64_t>(size),
            name + " must ascend from 0 to at most " + std::to_string(size));
}

}  // namespace rankbits
