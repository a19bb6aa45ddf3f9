// What this machine can do at best, measured: the yardsticks of the benchmarks.
#pragma once
#include <cstddef>

namespace rankbits {

double increments_per_second(size_t n_bins, bool is_joint);  // counters of n_bins, or of n_bins squared, at random distances
double popcounts_per_second();                                // pairs of 64 bits: load, xor, popcnt
double read_bytes_per_second(size_t bytes);                   // summing an array of this size, over and over

}  // namespace rankbits
