// Memory of one worker: aligned, and sized so that a block of items stays in the L2 cache.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace rankbits {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using Buffer = std::unique_ptr<T[], Free>;

template <class T>
Buffer<T> uninitialized(size_t n) {
    const size_t bytes = (n * sizeof(T) + 127) / 64 * 64;
    void* memory = std::aligned_alloc(64, bytes);
    if (!memory) throw std::bad_alloc();
    return Buffer<T>(static_cast<T*>(memory));
}

template <class T>
Buffer<T> zeroed(size_t n) {
    Buffer<T> memory = uninitialized<T>(n);
    std::memset(memory.get(), 0, (n * sizeof(T) + 127) / 64 * 64);
    return memory;
}

// Items a block: the n there are, cut evenly so that a block's layout takes most of a usual L2, 24,576 items of 64 bits; but up to
// 65,536 items of 32 bits and fewer, since clearing the counters of three short codes costs more than a slower cache.
inline size_t items_a_block(size_t width, size_t n) {
    const size_t fit = std::clamp((width <= 4 ? size_t{1} << 18 : size_t{3} << 16) / width, size_t{256}, size_t{1} << 16);
    const size_t n_blocks = (n + fit - 1) / fit;
    const size_t even = (n + n_blocks - 1) / n_blocks;
    return (even + 127) / 128 * 128;
}

}  // namespace rankbits
