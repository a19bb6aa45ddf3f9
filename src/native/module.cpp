// Bindings: arrays in, pointers out. Python callers have settled types, shapes and empties.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bounds.hpp"
#include "count.hpp"
#include "dispatch.hpp"

namespace nb = nanobind;
using namespace rankbits;

namespace {

template <class T, class... Shape>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Shape...>;
template <class T, class... Shape>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu, Shape...>;
using Matrix = In<uint8_t, nb::ndim<2>>;

Codes codes_of(const Matrix& array) { return {array.data(), array.shape(0), array.shape(1)}; }

Counts counts_of(Out<int64_t, nb::ndim<3>>& array) { return {array.data(), array.shape(1), array.shape(2)}; }

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

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "Native kernels of rankbits: loop nests over packed codes.";
    m.def("dispatch_levels", &dispatch_levels);
    m.def("use_dispatch", &use_dispatch, nb::arg("name"));
    m.def("dispatch", [] { return std::string(kernels().name); });

    m.def("count_classes",
          [](Matrix queries, Matrix items, In<int32_t, nb::ndim<1>> query_class, In<int32_t, nb::ndim<1>> item_class,
             Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return count_classes(codes_of(queries), codes_of(items), query_class.data(), item_class.data(), counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("query_class"), nb::arg("item_class"), nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);

    m.def("count_levels",
          [](Matrix queries, Matrix items, In<uint8_t, nb::ndim<2>> levels, Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return count_levels(codes_of(queries), codes_of(items), levels.data(), false, counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);
    m.def("count_levels",
          [](Matrix queries, Matrix items, In<uint16_t, nb::ndim<2>> levels, Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return count_levels(codes_of(queries), codes_of(items), levels.data(), true, counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);

    m.def("count_tags",
          [](Matrix queries, Matrix items, In<int64_t, nb::ndim<1>> starts, In<int32_t, nb::ndim<1>> tags, Matrix rows,
             Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return count_tags(codes_of(queries), codes_of(items), starts.data(), tags.data(), rows.data(), rows.shape(1),
                                    counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("starts"), nb::arg("tags"), nb::arg("rows"), nb::arg("counts").noconvert(),
          nb::arg("n_threads") = 1);

    m.def("largest_counts",
          [](Matrix queries, Matrix codes, In<int64_t, nb::ndim<1>> n_items, Out<int64_t, nb::ndim<2>> largest, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return largest_counts(codes_of(queries), codes_of(codes), n_items.data(), largest.data(), largest.shape(1), workers);
              });
          },
          nb::arg("queries"), nb::arg("codes"), nb::arg("n_items"), nb::arg("largest").noconvert(), nb::arg("n_threads") = 1);

    m.def("distances",
          [](Matrix queries, Matrix items, Out<uint16_t, nb::ndim<2>> out, size_t n_threads) {
              run(n_threads, [&](Workers& workers) { return all_distances(codes_of(queries), codes_of(items), out.data(), workers); });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1);

    const auto free = nb::call_guard<nb::gil_scoped_release>();
    m.def("increments_per_second", &increments_per_second, nb::arg("n_bins"), nb::arg("is_joint"), free);
    m.def("popcounts_per_second", &popcounts_per_second, free);
    m.def("read_bytes_per_second", &read_bytes_per_second, nb::arg("bytes"), free);
}
