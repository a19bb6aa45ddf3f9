// Numbers that take only the bits they need.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "large_pages.hpp"


namespace rankbits {

// n numbers of up to 32 bits, one behind the other: a number is read as part of the eight bytes that it begins in.
class PackedNumbers {
public:
    static size_t bytes_for(size_t n, size_t n_bits) { return (n * n_bits + 7) / 8 + sizeof(uint64_t); }

    void resize(size_t n, size_t n_bits) {
        n_bits_ = n_bits;
        mask_ = (uint64_t{1} << n_bits) - 1;
        bytes_.assign(bytes_for(n, n_bits), 0);
    }

    uint32_t operator[](size_t i) const { return static_cast<uint32_t>(word_of(i) >> (i * n_bits_ % 8) & mask_); }

    void set(size_t i, uint32_t value) {
        const size_t shift = i * n_bits_ % 8;
        const uint64_t word = (word_of(i) & ~(mask_ << shift)) | static_cast<uint64_t>(value) << shift;
        std::memcpy(bytes_.data() + i * n_bits_ / 8, &word, sizeof(word));
    }

    const uint8_t* address(size_t i) const { return bytes_.data() + i * n_bits_ / 8; }

private:
    uint64_t word_of(size_t i) const {
        uint64_t word;
        std::memcpy(&word, address(i), sizeof(word));
        return word;
    }

    size_t n_bits_ = 0;
    uint64_t mask_ = 0;
    LargeVector<uint8_t> bytes_;
};

}  // namespace rankbits
