// Bindings: arrays in, pointers out. Each checks that its arrays have the sizes that its kernel takes them to have.
#include "module.hpp"

#include "checks.hpp"
#include "count.hpp"
#include "dispatch.hpp"
#include "relax.hpp"
#include "soft.hpp"

namespace {

Codes codes_of(const Matrix& array) { return {array.data(), array.shape(0), array.shape(1)}; }

Counts counts_of(Out<int64_t, nb::ndim<3>>& array) { return {array.data(), array.shape(1), array.shape(2)}; }

// Levels of every pair, each below the number of levels.
template <class T>
void require_levels(const In<T, nb::ndim<2>>& levels, size_t n_queries, size_t n_items, size_t n_levels) {
    require_shape("levels", levels, {n_queries, n_items});
    require_range("levels", levels.data(), levels.size(), 0, static_cast<int64_t>(n_levels));
}

template <class T>
void count_checked_levels(Matrix queries, Matrix items, In<T, nb::ndim<2>> levels, Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
    require_codes(codes_of(queries), codes_of(items));
    require_counts(counts, codes_of(queries));
    require_levels(levels, queries.shape(0), items.shape(0), counts.shape(2));
    if (queries.size() == 0 || items.size() == 0) return;
    run(n_threads, [&](Workers& workers) {
        return count_levels(codes_of(queries), codes_of(items), levels.data(), sizeof(T) == 2, counts_of(counts), workers);
    });
}

template <class T>
Pairs<T> pairs_of(const In<T, nb::ndim<2>>& queries, const In<T, nb::ndim<2>>& items, size_t n_bins, double delta, bool is_square) {
    require(queries.shape(1) >= 1, "queries must have at least one bit");
    require_shape("items", items, {is_square ? queries.shape(0) : items.shape(0), queries.shape(1)});
    require(n_bins >= 1 && n_bins <= 4096, "n_bins must be from 1 to 4096, got " + std::to_string(n_bins));
    return {queries.data(), items.data(), nullptr, nullptr, queries.shape(0), items.shape(0), queries.shape(1), 1, n_bins, delta, is_square};
}

// The pairs with their levels and the item that each query leaves out, over soft counts of the given shape.
template <class T, class SoftCounts>
Pairs<T> pairs_of(const In<T, nb::ndim<2>>& queries, const In<T, nb::ndim<2>>& items, const Matrix& levels, const In<int64_t, nb::ndim<1>>& own,
                  const SoftCounts& counts, size_t n_bins, double delta, bool is_square) {
    Pairs<T> pairs = pairs_of<T>(queries, items, n_bins, delta, is_square);
    require_shape("counts", counts, {pairs.n_queries, n_bins + 1, counts.shape(2)});
    require(counts.shape(2) >= 1 && counts.shape(2) <= 256, "counts must have 1 to 256 levels, got " + std::to_string(counts.shape(2)));
    require_levels(levels, pairs.n_queries, pairs.n_items, counts.shape(2));
    if (own.size()) require_shape("own", own, {pairs.n_queries});
    pairs.levels = levels.data();
    pairs.own = own.size() ? own.data() : nullptr;
    pairs.n_levels = counts.shape(2);
    return pairs;
}

template <class T>
SoftRows<T> rows_of(const In<T, nb::ndim<3>>& counts, const In<int64_t, nb::ndim<2>>& level_counts, Out<T, nb::ndim<1>>& values,
                    Out<T, nb::ndim<3>>& grads) {
    require_shape("level_counts", level_counts, {counts.shape(0), counts.shape(2)});
    require_shape("values", values, {counts.shape(0)});
    if (grads.size()) require_shape("grads", grads, {counts.shape(0), counts.shape(1), counts.shape(2)});
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
              const Pairs<T> pairs = pairs_of<T>(queries, items, levels, own, counts, n_bins, delta, is_square);
              require_shape("level_counts", level_counts, {pairs.n_queries, pairs.n_levels});
              if (bins.size()) require_shape("bins", bins, {kept_bins(pairs)});
              run(n_threads, [&](Workers& workers) {
                  return count_soft(pairs, counts.data(), level_counts.data(), bins.size() ? bins.data() : nullptr, workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("own"), nb::arg("n_bins"), nb::arg("delta"), nb::arg("is_square"),
          nb::arg("counts").noconvert(), nb::arg("level_counts").noconvert(), nb::arg("bins").noconvert(), nb::arg("n_threads") = 1);
    m.def("pull_soft",
          [](Codes2 queries, Codes2 items, Matrix levels, Own own, size_t n_bins, double delta, bool is_square, In<T, nb::ndim<3>> grad_counts,
             In<uint8_t, nb::ndim<1>> bins, Out<T, nb::ndim<2>> grad_queries, Out<T, nb::ndim<2>> grad_items, size_t n_threads) {
              const Pairs<T> pairs = pairs_of<T>(queries, items, levels, own, grad_counts, n_bins, delta, is_square);
              require_shape("bins", bins, {kept_bins(pairs)});
              require_shape("grad_queries", grad_queries, {pairs.n_queries, pairs.n_bits});
              if (grad_items.size()) require_shape("grad_items", grad_items, {pairs.n_items, pairs.n_bits});
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
              return kept_bins(pairs_of<T>(queries, items, n_bins, delta, is_square));
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("n_bins"), nb::arg("delta"), nb::arg("is_square"));
    m.def("relaxed_ap",
          [](In<T, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts, int form, Out<T, nb::ndim<1>> values, Out<T, nb::ndim<3>> grads,
             size_t n_threads) {
              const SoftRows<T> rows = rows_of<T>(counts, level_counts, values, grads);
              require(form >= 0 && form <= 3, "form must be from 0 to 3, got " + std::to_string(form));
              require(rows.n_levels == 2, "counts must have 2 levels, got " + std::to_string(rows.n_levels));
              run(n_threads, [&](Workers& workers) { return relaxed_ap(rows, Form(form), workers); });
          },
          nb::arg("counts"), nb::arg("level_counts"), nb::arg("form"), nb::arg("values").noconvert(), nb::arg("grads").noconvert(),
          nb::arg("n_threads") = 1);
    m.def("relaxed_ndcg",
          [](In<T, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts, int form, In<double, nb::ndim<1>> gains,
             In<double, nb::ndim<1>> discount_sums, Out<T, nb::ndim<1>> values, Out<T, nb::ndim<3>> grads, size_t n_threads) {
              const SoftRows<T> rows = rows_of<T>(counts, level_counts, values, grads);
              require(form >= 0 && form <= 3, "form must be from 0 to 3, got " + std::to_string(form));
              require_shape("gains", gains, {rows.n_levels});
              require(discount_sums.size() >= 2, "discount_sums must have at least 2 values, got " + std::to_string(discount_sums.size()));
              const DiscountSums sums{discount_sums.data(), discount_sums.size()};
              run(n_threads, [&](Workers& workers) { return relaxed_ndcg(rows, Form(form), gains.data(), sums, workers); });
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
              require_codes(codes_of(queries), codes_of(items));
              require_counts(counts, codes_of(queries));
              require_shape("query_class", query_class, {queries.shape(0)});
              require_shape("item_class", item_class, {items.shape(0)});
              const bool has_classes = counts.shape(2) == 2;  // else all items are to go to level 0
              require_range("query_class", query_class.data(), query_class.size(), INT32_MIN, has_classes ? int64_t(queries.shape(0)) : 0);
              if (queries.size() == 0 || items.size() == 0) return;
              run(n_threads, [&](Workers& workers) {
                  return count_classes(codes_of(queries), codes_of(items), query_class.data(), item_class.data(), counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("query_class"), nb::arg("item_class"), nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);

    m.def("count_levels", &count_checked_levels<uint8_t>, nb::arg("queries"), nb::arg("items"), nb::arg("levels"),
          nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);
    m.def("count_levels", &count_checked_levels<uint16_t>, nb::arg("queries"), nb::arg("items"), nb::arg("levels"),
          nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);

    m.def("count_tags",
          [](Matrix queries, Matrix items, In<int64_t, nb::ndim<1>> starts, In<int32_t, nb::ndim<1>> tags, Matrix rows,
             Out<int64_t, nb::ndim<3>> counts, size_t n_threads) {
              require_codes(codes_of(queries), codes_of(items));
              require_counts(counts, codes_of(queries));
              require_shape("rows", rows, {items.shape(0), rows.shape(1)});
              require_shape("starts", starts, {queries.shape(0) + 1});
              require_starts("starts", starts.data(), queries.shape(0), tags.size());
              require_range("tags", tags.data(), tags.size(), 0, static_cast<int64_t>(rows.shape(1)));
              if (queries.size() == 0 || items.size() == 0) return;
              run(n_threads, [&](Workers& workers) {
                  return count_tags(codes_of(queries), codes_of(items), starts.data(), tags.data(), rows.data(), rows.shape(1),
                                    counts_of(counts), workers);
              });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("starts"), nb::arg("tags"), nb::arg("rows"), nb::arg("counts").noconvert(),
          nb::arg("n_threads") = 1);

    m.def("largest_counts",
          [](Matrix queries, Matrix codes, In<int64_t, nb::ndim<1>> n_items, Out<int64_t, nb::ndim<2>> largest, size_t n_threads) {
              require_codes(codes_of(queries), codes_of(codes));
              require_shape("n_items", n_items, {codes.shape(0)});
              require_shape("largest", largest, {queries.shape(0), bins_of_bytes(queries.shape(1))});
              run(n_threads, [&](Workers& workers) {
                  return largest_counts(codes_of(queries), codes_of(codes), n_items.data(), largest.data(), workers);
              });
          },
          nb::arg("queries"), nb::arg("codes"), nb::arg("n_items"), nb::arg("largest").noconvert(), nb::arg("n_threads") = 1);

    m.def("distances",
          [](Matrix queries, Matrix items, Out<uint16_t, nb::ndim<2>> out, size_t n_threads) {
              require_codes(codes_of(queries), codes_of(items));
              require_shape("out", out, {queries.shape(0), items.shape(0)});
              run(n_threads, [&](Workers& workers) { return all_distances(codes_of(queries), codes_of(items), out.data(), workers); });
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("out").noconvert(), nb::arg("n_threads") = 1);

    define_objectives<float>(m);
    define_objectives<double>(m);
    define_search(m);
    m.def("polygammas", [](In<double, nb::ndim<1>> x, Out<double, nb::ndim<2>> out) {
        require_shape("out", out, {5, std::max(x.size() + 3, out.shape(1))});
        std::vector<double> points(x.size() + 3, 1.0);  // the kernel reads up to three points further
        std::copy_n(x.data(), x.size(), points.begin());
        soft_kernels().polygammas(points.data(), x.size(), out.shape(1), out.data());
    }, nb::arg("x"), nb::arg("out").noconvert());
}
