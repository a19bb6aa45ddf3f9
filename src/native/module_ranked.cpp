// Bindings of ties among real-valued distances.
#include "checks.hpp"
#include "module.hpp"
#include "products.hpp"
#include "ranked_ties.hpp"

namespace {

using Numbers = In<double, nb::ndim<1>>;
using Integers = In<int64_t, nb::ndim<1>>;

void create(RankedTies* self, Numbers marks, Integers starts, Out<uint32_t, nb::ndim<2>> counts) {
    require(starts.size() >= 1 && marks.size() < UINT32_MAX, "starts must have a number more than there are queries");
    require_starts("starts", starts.data(), starts.size() - 1, marks.size());
    require(starts.data()[0] == 0 && starts.data()[starts.size() - 1] == static_cast<int64_t>(marks.size()), "starts must go from 0 to all marks");
    for (size_t q = 0; q + 1 < starts.size(); ++q) {
        for (int64_t i = starts.data()[q] + 1; i < starts.data()[q + 1]; ++i) {
            require(marks.data()[i - 1] <= marks.data()[i], "marks of a query must ascend");
        }
    }
    require_shape("counts", counts, {marks.size(), 2});
    new (self) RankedTies(marks.data(), starts.data(), starts.size() - 1, reinterpret_cast<RankCounts*>(counts.data()));
}

template <class Number>
size_t add_block(RankedTies& self, In<Number, nb::ndim<2>> distances, Numbers slack, Out<uint8_t, nb::ndim<2>> is_open, size_t n_threads) {
    require_shape("distances", distances, {self.n_queries(), distances.shape(1)});
    require_shape("slack", slack, {self.n_queries()});
    require_shape("is_open", is_open, {self.n_queries(), distances.shape(1)});
    size_t n_open = 0;
    run(n_threads, [&](Workers& workers) {
        return self.add_block(distances.data(), distances.shape(1), slack.data(), is_open.data(), &n_open, workers);
    });
    return n_open;
}

template <class T>
void multiply(In<T, nb::ndim<2>> rows, In<double, nb::ndim<2>> queries, Out<double, nb::ndim<2>> products, Out<double, nb::ndim<1>> squares,
              size_t n_threads) {
    require(queries.shape(1) == rows.shape(1), "queries must have as many numbers as rows");
    require_shape("products", products, {queries.shape(0), rows.shape(0)});
    require_shape("squares", squares, {rows.shape(0)});
    const ProductRows<T> own{rows.data(), rows.shape(0), rows.shape(1)};
    run(n_threads, [&](Workers& workers) {
        return multiply_rows(own, queries.data(), queries.shape(0), products.data(), squares.data(), workers);
    });
}

template <class T>
void define_products(nb::module_& m) {
    m.def("multiply_rows", &multiply<T>, nb::arg("rows").noconvert(), nb::arg("queries"), nb::arg("products").noconvert(),
          nb::arg("squares").noconvert(), nb::arg("n_threads") = 1);
}

}  // namespace

void define_ranked(nb::module_& m) {
    define_products<float>(m);
    define_products<double>(m);
    nb::class_<RankedTies>(m, "RankedTies")
        .def("__init__", &create, nb::arg("marks").noconvert(), nb::arg("starts"), nb::arg("counts").noconvert(), nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 4>())
        .def("add_block", &add_block<double>, nb::arg("distances").noconvert(), nb::arg("slack"), nb::arg("is_open").noconvert(),
             nb::arg("n_threads") = 1)
        .def("add_block", &add_block<float>, nb::arg("distances").noconvert(), nb::arg("slack"), nb::arg("is_open").noconvert(),
             nb::arg("n_threads") = 1)
        .def("add_pairs",
             [](RankedTies& self, Integers queries, Numbers distances) {
                 require_shape("distances", distances, {queries.size()});
                 require_range("queries", queries.data(), queries.size(), 0, static_cast<int64_t>(self.n_queries()));
                 for (size_t i = 0; i < distances.size(); ++i) require(distances.data()[i] == distances.data()[i], "distances must be numbers");
                 self.add_pairs(queries.data(), distances.data(), queries.size());
             },
             nb::arg("queries"), nb::arg("distances"));
}
