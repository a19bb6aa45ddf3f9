// Memory of one worker: aligned, and sized so that a block of items stays in the L2 cache.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

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

// Bytes of a core's L2 cache, within what is usual; the least of these where the system does not say.
inline size_t level_2_cache() {
    constexpr long LEAST = 1 << 19, MOST = 1 << 21;
#ifdef _SC_LEVEL2_CACHE_SIZE
    static const size_t size = static_cast<size_t>(std::clamp(sysconf(_SC_LEVEL2_CACHE_SIZE), LEAST, MOST));
    return size;
#else
    return LEAST;
#endif
}

// Items a block: the n there are, cut evenly so that a block's layout, two bytes for each of a code, takes three quarters of the L2 cache:
// 24,576 items of 64 bits where that is 512 KB. But up to 65,536 items of 32 bits and fewer, since clearing the counters of three
// short codes costs more than a slower cache.
inline size_t items_a_block(size_t width, size_t n) {
    const size_t fit = std::clamp((width <= 4 ? size_t{1} << 18 : level_2_cache() / 8 * 3) / width, size_t{256}, size_t{1} << 16);
    const size_t n_blocks = (n + fit - 1) / fit;
    const size_t even = (n + n_blocks - 1) / n_blocks;
    return (even + 127) / 128 * 128;
}

}  // namespace rankbits
