#include "dispatch.hpp"

#include <atomic>

#include "products.hpp"

namespace rankbits {
namespace {

std::vector<const Kernels*> available() {
    std::vector<const Kernels*> levels{&portable_kernels()};
    if (const Kernels* avx2 = avx2_kernels()) levels.push_back(avx2);
    if (const Kernels* avx512 = avx512_kernels()) levels.push_back(avx512);
    return levels;
}

std::atomic<const Kernels*> current{nullptr};

}  // namespace

const Kernels* avx512_kernels() {
    if (!avx2_kernels() || !avx512_product_kernels()) return nullptr;
    static const Kernels renamed = [] {
        Kernels own = *avx2_kernels();
        own.name = "avx512";
        return own;
    }();
    return &renamed;
}

std::vector<std::string> dispatch_levels() {
    std::vector<std::string> names;
    for (const Kernels* level : available()) names.emplace_back(level->name);
    return names;
}

bool use_dispatch(const std::string& name) {
    for (const Kernels* level : available()) {
        if (name == level->name) {
            current = level;
            return true;
        }
    }
    return false;
}

const Kernels& kernels() {
    if (!current) current = available().back();
    return *current;
}

}  // namespace rankbits
