#include "dispatch.hpp"

#include <atomic>

namespace rankbits {
namespace {

std::vector<const Kernels*> available() {
    std::vector<const Kernels*> found{&portable_kernels()};
    if (const Kernels* avx2 = avx2_kernels()) found.push_back(avx2);
    return found;
}

std::atomic<const Kernels*> current{nullptr};

}  // namespace

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
