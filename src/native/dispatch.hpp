// Which instruction set runs: the best this CPU has, or the one that the caller asked for.
#pragma once
#include <string>
#include <vector>

#include "kernels.hpp"

namespace rankbits {

std::vector<std::string> dispatch_levels();         // names that can run here, slowest first
bool use_dispatch(const std::string& name);         // false if there is no such level here
const Kernels& kernels();                           // the level in use

}  // namespace rankbits
