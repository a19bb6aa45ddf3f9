// Bindings: arrays in, pointers out. Python callers have settled types, shapes and empties.
#include "module.hpp"

#include "bounds.hpp"
#include "count.hpp"
#include "dispatch.hpp"
#include "relax.hpp"
#include "soft.hpp"

namespace {

Codes codes_of(const Matrix& array) { return {array.data(), array.shape(0), array.shape(1)}; }

Counts counts_of(Out<int64_t, nb::ndim<3>>& array) { return {array.data(), array.shape(1), array.shape(2)}; }

template <class T>
Pairs<T> pairs_of(const In<T, nb::ndim<2>>& queries, const In<T, nb::ndim<2>>& items, const Matrix& levels, const In<int64_t, nb::ndim<1>>& own,
                  size_t n_levels, size_t n_bins, double delta, bool is_square) {
    return {queries.data(), items.data(), levels.data(), own.size() ? own.data() : nullptr, queries.shape(0), items.shape(0),
            queries.shape(1), n_levels, n_bins, delta, is_square};
}

template <class T>
SoftRows<T> rows_of(const In<T, nb::ndim<3>>& counts, const In<int64_t, nb::ndim<2>>& level_counts, Out<T, nb::ndim<1>>& values,
                    Out<T, nb::ndim<3>>& grads) {
    return {counts.data(), level_counts.data(), counts.shape(0), counts.shape(1), counts.shape(2), values.data(), grads.size() ? grads.data() : nullptr};
}

// The soft histogram and the objectives in one precision. Arrays of size 0 stand for what is not there.
template <class T>
void define_objectives(nb::module_& m) {
    using Codes2 = In<T, nb::ndim<2>>;
    using Own = In<int64_t, nb::ndim<1>>;
    m.def("count_soft",
          [](Codes2 queries, Codes2 items, Matrix levels, Own own, size_t n_bins, double delta, bool is_square, Out<T, nb::ndim<3>> counts,
             Out<int64_t, nb::ndim<2>> level_counts, Out<uint8_t, nb::ndim<1>> bins, size_t n_threads) {
              const Pairs<T> pairs = pairs_of<T>(queries, items, levels, own, counts.shape(2), n_bins, delta, is_square);
              run(n_threads, [&](Workers& workers) {
                  return count_soft(pairs, counts.data(), level_counts.data(), bins.size() ? bins.data() : nullptr, workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("own"), nb::arg("n_bins"), nb::arg("delta"), nb::arg("is_square"),
          nb::arg("counts").noconvert(), nb::arg("level_counts").noconvert(), nb::arg("bins").noconvert(), nb::arg("n_threads") = 1);
    m.def("pull_soft",
          [](Codes2 queries, Codes2 items, Matrix levels, Own own, size_t n_bins, double delta, bool is_square, In<T, nb::ndim<3>> grad_counts,
             In<uint8_t, nb::ndim<1>> bins, Out<T, nb::ndim<2>> grad_queries, Out<T, nb::ndim<2>> grad_items, size_t n_threads) {
              const Pairs<T> pairs = pairs_of<T>(queries, items, levels, own, grad_counts.shape(2), n_bins, delta, is_square);
              run(n_threads, [&](Workers& workers) {
                  return pull_soft(pairs, grad_counts.data(), bins.data(), grad_queries.data(), grad_items.size() ? grad_items.data() : nullptr,
                                   workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("own"), nb::arg("n_bins"), nb::arg("delta"), nb::arg("is_square"),
          nb::arg("grad_counts"), nb::arg("bins"), nb::arg("grad_queries").noconvert(), nb::arg("grad_items").noconvert(),
          nb::arg("n_threads") = 1);
    m.def("kept_bins",
          [](Codes2 queries, Codes2 items, size_t n_bins, double delta, bool is_square) {
              return kept_bins(Pairs<T>{queries.data(), items.data(), nullptr, nullptr, queries.shape(0), items.shape(0), queries.shape(1), 1,
                                        n_bins, delta, is_square});
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("n_bins"), nb::arg("delta"), nb::arg("is_square"));
    m.def("relaxed_ap",
          [](In<T, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts, int form, Out<T, nb::ndim<1>> values, Out<T, nb::ndim<3>> grads,
             size_t n_threads) {
              run(n_threads, [&](Workers& workers) { return relaxed_ap(rows_of<T>(counts, level_counts, values, grads), Form(form), workers); });
          },
          nb::arg("counts"), nb::arg("level_counts"), nb::arg("form"), nb::arg("values").noconvert(), nb::arg("grads").noconvert(),
          nb::arg("n_threads") = 1);
    m.def("relaxed_ndcg",
          [](In<T, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts, int form, In<double, nb::ndim<1>> gains,
             In<double, nb::ndim<1>> discount_sums, Out<T, nb::ndim<1>> values, Out<T, nb::ndim<3>> grads, size_t n_threads) {
              run(n_threads, [&](Workers& workers) {
                  return relaxed_ndcg(rows_of<T>(counts, level_counts, values, grads), Form(form), gains.data(), discount_sums.data(), workers);
              });
          },
          nb::arg("counts"), nb::arg("level_counts"), nb::arg("form"), nb::arg("gains"), nb::arg("discount_sums"), nb::arg("values").noconvert(),
          nb::arg("grads").noconvert(), nb::arg("n_threads") = 1);
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

    define_objectives<float>(m);
    define_objectives<double>(m);
    define_search(m);
    m.def("polygammas", [](In<double, nb::ndim<1>> x, Out<double, nb::ndim<2>> out) {
        soft_kernels().polygammas(x.data(), x.size(), out.shape(1), out.data());
    }, nb::arg("x"), nb::arg("out").noconvert());

    const auto free = nb::call_guard<nb::gil_scoped_release>();
    m.def("increments_per_second", &increments_per_second, nb::arg("n_bins"), nb::arg("is_joint"), free);
    m.def("popcounts_per_second", &popcounts_per_second, free);
    m.def("read_bytes_per_second", &read_bytes_per_second, nb::arg("bytes"), free);
}
