// Bindings: arrays in, pointers out. Each checks that its arrays have the sizes that its kernel takes them to have.
#include "module.hpp"

#include "checks.hpp"
#include "count.hpp"
#include "dispatch.hpp"

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

    define_objectives(m);
    define_search(m);
    define_ranked(m);
    define_additive(m);
    define_faults(m);
}
