// An inverted file: items in lists by their nearest centre; a query looks into the lists of its nearest centres only.
#pragma once
#include "scan.hpp"

namespace rankbits {

struct Lists {
    Planes items;            // list after list, each from a new group on
    const int64_t* starts;   // first group of each list, and the end of the last
    const uint32_t* rows;    // row of each place; places behind the end of a list hold NO_ROW
    const uint32_t* sizes;   // items of each list
    size_t n_rows;           // rows are below it
    Planes centres;
};

constexpr uint32_t NO_ROW = 0xffffffff;

// Finds in order of (distance, row) what lies in the n_probes nearest lists. allowed speaks of rows. False if stopped.
bool search_lists(const Lists& lists, const uint8_t* queries, const uint64_t* allowed, const Wanted& wanted, size_t n_probes, Results& results,
                  Workers& workers);

}  // namespace rankbits
