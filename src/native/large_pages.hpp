// Memory for arrays that are read at random: in large pages, where the system has them, fewer addresses need to be looked up.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

namespace rankbits {

template <class T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <class Other>
    LargePages(const LargePages<Other>&) {}

    T* allocate(size_t n) {
        if (n > std::numeric_limits<size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
        const size_t align = n * sizeof(T) < 2 * PAGE ? 64 : PAGE, bytes = (n * sizeof(T) + align - 1) / align * align;
        void* memory = std::aligned_alloc(align, bytes);
        if (!memory) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
        if (align == PAGE) madvise(memory, bytes, MADV_HUGEPAGE);  // an advice: nothing is lost where it is not taken
#endif
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, size_t) { std::free(memory); }

    friend bool operator==(const LargePages&, const LargePages&) { return true; }

private:
    static constexpr size_t PAGE = size_t{1} << 21;
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace rankbits
