// What the files of bindings share: array types, and running without the GIL.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "aligned.hpp"
#include "workers.hpp"

namespace nb = nanobind;
using namespace rankbits;

template <class T, class... Shape>
using In = Aligned<const T, nb::c_contig, nb::device::cpu, Shape...>;
template <class T, class... Shape>
using Out = Aligned<T, nb::c_contig, nb::device::cpu, Shape...>;
using Matrix = In<uint8_t, nb::ndim<2>>;

// Runs work without the GIL; Ctrl-C and other signal handlers run about 20 times a second, and what they raise stops the work.
template <class Work>
void run(size_t n_threads, Work work) {
    Workers workers(n_threads, [] {
        nb::gil_scoped_acquire held;
        return PyErr_CheckSignals() == 0;
    });
    bool finished;
    {
        nb::gil_scoped_release released;
        finished = work(workers);
    }
    if (!finished) throw nb::python_error();
}

void define_objectives(nb::module_& m);
void define_search(nb::module_& m);  // which calls the next
void define_rescore(nb::module_& m);
void define_ranked(nb::module_& m);
void define_additive(nb::module_& m);
void define_faults(nb::module_& m);
