#include "kernels.hpp"
namespace rankbits { const Kernels* avx2_kernels() { return nullptr; } }
