// Bindings of ties among real-valued distances.
#include "checks.hpp"
#include "module.hpp"
#include "products.hpp"
#include "ranked_ties.hpp"
#include "tie_table.hpp"

namespace {

using Numbers = In<double, nb::ndim<1>>;
using Integers = In<int64_t, nb::ndim<1>>;

// Counts between marks, with the arrays that they lie in.
struct TieArrays {
    Numbers marks;
    Out<uint32_t, nb::ndim<2>> counts;
    RankedTies ties;
};

void create(TieArrays* self, Numbers marks, Integers starts, Out<uint32_t, nb::ndim<2>> counts) {
    require(starts.size() >= 1 && marks.size() < UINT32_MAX, "starts must have a number more than there are queries");
    require_starts("starts", starts.data(), starts.size() - 1, marks.size());
    require(starts.data()[0] == 0 && starts.data()[starts.size() - 1] == static_cast<int64_t>(marks.size()), "starts must go from 0 to all marks");
    for (size_t q = 0; q + 1 < starts.size(); ++q) {
        for (int64_t i = starts.data()[q] + 1; i < starts.data()[q + 1]; ++i) {
            require(marks.data()[i - 1] <= marks.data()[i], "marks of a query must ascend");
        }
    }
    require_shape("counts", counts, {2, marks.size()});
    const RankCounts rows{counts.data(), counts.data() + marks.size()};
    new (self) TieArrays{marks, counts, RankedTies(marks.data(), starts.data(), starts.size() - 1, rows)};
}

template <class Number>
size_t add_block(TieArrays& self, In<Number, nb::ndim<2>> distances, Numbers slack, Matrix is_left_out, Out<uint8_t, nb::ndim<2>> is_open,
                 size_t n_threads) {
    const size_t n_queries = self.ties.n_queries(), n = distances.shape(1);
    require_shape("distances", distances, {n_queries, n});
    require_shape("slack", slack, {n_queries});
    require_shape("is_left_out", is_left_out, {n_queries, n});
    require_shape("is_open", is_open, {n_queries, n});
    const RankBlock<Number> block{distances.data(), slack.data(), is_left_out.data(), is_open.data(), n};
    size_t n_open = 0;
    run(n_threads, [&](Workers& workers) { return self.ties.add_block(block, &n_open, workers); });
    return n_open;
}

template <class Number>
void define_add_block(nb::class_<TieArrays>& ties) {
    ties.def("add_block", &add_block<Number>, nb::arg("distances").noconvert(), nb::arg("slack"), nb::arg("is_left_out").noconvert(),
             nb::arg("is_open").noconvert(), nb::arg("n_threads") = 1);
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

template <class Position>
size_t tabulate(Numbers marks, In<Position, nb::ndim<1>> positions, In<uint32_t, nb::ndim<2>> counts, size_t n_items, uint64_t depth,
                Out<int64_t, nb::ndim<2>> table) {
    const size_t n = marks.size(), n_levels = table.shape(1);
    require_shape("positions", positions, {n});
    require_shape("counts", counts, {2, n});
    require_shape("table", table, {2 * n + 1, n_levels});
    require_range("positions", positions.data(), n, 0, static_cast<int64_t>(n_levels));
    require(n_levels >= 1, "table must have a column for each level");
    uint64_t n_counted = n;
    for (size_t i = 0; i < 2 * n; ++i) n_counted += counts.data()[i];
    require(n_counted <= n_items, "n_items must be at least as many as were counted");
    const MarkedRanking<Position> ranking{marks.data(), positions.data(), counts.data(), counts.data() + n, n, n_items};
    return TieTable(table.data(), n_levels, depth).fill(ranking);
}

template <class Position>
void define_tables(nb::module_& m) {
    m.def("tabulate_ties", &tabulate<Position>, nb::arg("marks").noconvert(), nb::arg("positions").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("n_items"), nb::arg("depth"), nb::arg("table").noconvert());
}

}  // namespace

void define_ranked(nb::module_& m) {
    define_products<float>(m);
    define_products<double>(m);
    define_tables<uint8_t>(m);
    define_tables<uint16_t>(m);
    nb::class_<TieArrays> ties(m, "RankedTies");
    ties.def("__init__", &create, nb::arg("marks").noconvert(), nb::arg("starts"), nb::arg("counts").noconvert());
    define_add_block<double>(ties);
    define_add_block<float>(ties);
    ties.def(
        "add_pairs",
        [](TieArrays& self, Integers queries, Numbers distances) {
            require_shape("distances", distances, {queries.size()});
            require_range("queries", queries.data(), queries.size(), 0, static_cast<int64_t>(self.ties.n_queries()));
            for (size_t i = 0; i < distances.size(); ++i) require(distances.data()[i] == distances.data()[i], "distances must be numbers");
            self.ties.add_pairs(queries.data(), distances.data(), queries.size());
        },
        nb::arg("queries"), nb::arg("distances"));
}
