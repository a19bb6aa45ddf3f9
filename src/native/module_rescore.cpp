// Bindings of re-ranking.
#include <stdexcept>
#include <string>

#include "module.hpp"
#include "rescore.hpp"

namespace {

using Numbers = In<double, nb::ndim<1>>;
using Rows = In<double, nb::ndim<2>>;
using Integers = In<int64_t, nb::ndim<1>>;

void require(bool is_right, const char* message) {
    if (!is_right) throw std::invalid_argument(message);
}

bool are_below(const Integers& values, size_t n) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (values.data()[i] < 0 || static_cast<size_t>(values.data()[i]) >= n) return false;
    }
    return true;
}

bool are_offsets(const Integers& offsets, size_t n) {
    if (offsets.size() == 0 || offsets.data()[0] != 0 || offsets.data()[offsets.size() - 1] != static_cast<int64_t>(n)) return false;
    for (size_t i = 1; i < offsets.size(); ++i) {
        if (offsets.data()[i] < offsets.data()[i - 1]) return false;
    }
    return true;
}

// Halves come as their bits, since not every way to hand over an array knows them.
template <class T>
void define_vectors(nb::module_& m, Number number) {
    m.def("score_vectors",
          [number](In<T, nb::ndim<2>> source, Integers rows, Integers query_numbers, Rows queries, int metric, Out<double, nb::ndim<1>> scores,
                   size_t n_threads) {
              require(rows.size() == scores.size() && query_numbers.size() == scores.size(), "rows, query_numbers and scores must be equally many");
              require(queries.shape(1) == source.shape(1), "queries must have as many numbers as rows of source");
              require(metric >= 0 && metric < 3, "metric must be 0, 1 or 2");
              require(are_below(rows, source.shape(0)), "rows must be rows of source");
              require(are_below(query_numbers, queries.shape(0)), "query_numbers must be rows of queries");
              int64_t bad_row = NO_BAD_ROW;
              const VectorPairs pairs{source.data(), number,      source.shape(0),      source.shape(1), queries.data(),
                                      rows.data(),   query_numbers.data(), rows.size()};
              run(n_threads, [&](Workers& workers) { return score_vectors(pairs, Metric(metric), scores.data(), &bad_row, workers); });
              return bad_row == NO_BAD_ROW ? int64_t{-1} : bad_row;
          },
          nb::arg("source").noconvert(), nb::arg("rows"), nb::arg("query_numbers"), nb::arg("queries"), nb::arg("metric"),
          nb::arg("scores").noconvert(), nb::arg("n_threads") = 1);
}

}  // namespace

void define_rescore(nb::module_& m) {
    define_vectors<uint16_t>(m, Number::half);
    define_vectors<float>(m, Number::single);
    define_vectors<double>(m, Number::whole);
    define_vectors<int8_t>(m, Number::int8);
    define_vectors<uint8_t>(m, Number::uint8);

    m.def("score_bytes",
          [](Rows if_set, Rows if_clear, Matrix masks, Matrix codes, Integers offsets, Out<double, nb::ndim<1>> scores, size_t n_threads) {
              const size_t n = masks.shape(0), width = masks.shape(1);
              require(if_set.shape(0) == n && if_clear.shape(0) == n && offsets.size() == n + 1, "if_set, if_clear and masks must be one for each query");
              require(if_set.shape(1) == if_clear.shape(1) && if_set.shape(1) <= 8 * width, "if_set and if_clear must have a number for each bit");
              require(codes.shape(0) == scores.size() && codes.shape(1) == width, "codes must be one for each score, as wide as masks");
              require(are_offsets(offsets, scores.size()), "offsets must ascend from 0 to the number of scores");
              const BytePairs pairs{if_set.data(), if_clear.data(), if_set.shape(1), width, n, masks.data(), codes.data(), offsets.data()};
              run(n_threads, [&](Workers& workers) { return score_bytes(pairs, scores.data(), workers); });
          },
          nb::arg("if_set"), nb::arg("if_clear"), nb::arg("masks"), nb::arg("codes"), nb::arg("offsets"), nb::arg("scores").noconvert(),
          nb::arg("n_threads") = 1);

    m.def("score_tables",
          [](Rows tables, Matrix codes, Integers offsets, Out<double, nb::ndim<1>> scores, size_t n_threads) {
              const size_t n = tables.shape(0), n_bits = tables.shape(1) / 4, width = (n_bits + 7) / 8;  // spare bits are zero
              require(offsets.size() == n + 1, "tables must be one row for each query");
              require(tables.shape(1) > 0 && tables.shape(1) % 16 == 0, "tables must have 16 numbers for every four bits");
              require(codes.shape(0) == scores.size() && codes.shape(1) == width, "codes must be one for each score, as wide as tables say");
              require(are_offsets(offsets, scores.size()), "offsets must ascend from 0 to the number of scores");
              const TablePairs pairs{{tables.data(), tables.shape(1), n_bits}, width, n, codes.data(), offsets.data()};
              run(n_threads, [&](Workers& workers) { return score_tables(pairs, scores.data(), workers); });
          },
          nb::arg("tables"), nb::arg("codes"), nb::arg("offsets"), nb::arg("scores").noconvert(), nb::arg("n_threads") = 1);

    m.def("best_scores",
          [](Numbers scores, Integers ids, Integers offsets, Out<float, nb::ndim<2>> best, Out<int64_t, nb::ndim<2>> best_ids, size_t n_threads) {
              require(ids.size() == scores.size() && are_offsets(offsets, scores.size()), "offsets must ascend from 0 to the number of scores and ids");
              require(best.shape(0) + 1 == offsets.size() && best.shape(0) == best_ids.shape(0) && best.shape(1) == best_ids.shape(1),
                      "best and best_ids must have a row for each query");
              bool is_number = true;
              const Ranking ranking{scores.data(), ids.data(), offsets.data(), best.shape(0), best.shape(1)};
              run(n_threads, [&](Workers& workers) { return best_scores(ranking, best.data(), best_ids.data(), &is_number, workers); });
              return is_number;
          },
          nb::arg("scores"), nb::arg("ids"), nb::arg("offsets"), nb::arg("best").noconvert(), nb::arg("best_ids").noconvert(),
          nb::arg("n_threads") = 1);
}
