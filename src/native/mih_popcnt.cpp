#if defined(__POPCNT__)
#include "mih_look_up.hpp"

namespace rankbits {

LookUp popcnt_look_up() { return __builtin_cpu_supports("popcnt") ? &look_up : nullptr; }

}  // namespace rankbits
#else
#include "mih.hpp"

namespace rankbits {

LookUp popcnt_look_up() { return nullptr; }

}  // namespace rankbits
#endif
