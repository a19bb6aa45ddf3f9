// Memory of one worker: aligned, zeroed, and sized so that a block of items stays in the L2 cache.
#pragma once
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
Buffer<T> zeroed(size_t n) {
    const size_t bytes = (n * sizeof(T) + 127) / 64 * 64;
    void* memory = std::aligned_alloc(64, bytes);
    if (!memory) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    return Buffer<T>(static_cast<T*>(memory));
}

// Items whose layout takes about 256 KB, half of a usual L2: 16,384 of 64 bits.
inline size_t items_a_block(size_t width) {
    const size_t fit = (size_t{1} << 17) / width;
    const size_t rounded = fit / 256 * 256;
    return rounded < 256 ? 256 : rounded > 65536 ? 65536 : rounded;
}

}  // namespace rankbits
