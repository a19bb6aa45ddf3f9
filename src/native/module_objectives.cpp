// Bindings of the soft histogram and the relaxed metrics. A histogram is an object: what counting leaves for the way back stays inside
// it, so that Python hands over codes and levels once and gets numbers.
#include <bit>
#include <limits>
#include <string>
#include <type_traits>

#include "checks.hpp"
#include "module.hpp"
#include "relax.hpp"
#include "soft_histogram.hpp"

namespace {

using Levels = Aligned<nb::ro, nb::c_contig, nb::device::cpu, nb::ndim<2>>;
using Own = In<int64_t, nb::ndim<1>>;

LevelMatrix levels_of(const Levels& levels) {
    const nb::dlpack::dtype type = levels.dtype();
    if (type == nb::dtype<uint8_t>()) return {levels.data(), LevelType::u8};
    if (type == nb::dtype<int8_t>()) return {levels.data(), LevelType::i8};
    if (type == nb::dtype<int16_t>()) return {levels.data(), LevelType::i16};
    if (type == nb::dtype<int32_t>()) return {levels.data(), LevelType::i32};
    require(type == nb::dtype<int64_t>(), "levels must be of type uint8, int8, int16, int32 or int64");
    return {levels.data(), LevelType::i64};
}

// Smallest and largest level.
std::pair<int64_t, int64_t> level_range(const Levels& levels) {
    const size_t n = levels.size();
    if (n == 0) return {0, 0};
    return with_levels(levels_of(levels), [n](auto* values) {
        auto smallest = values[0], largest = values[0];
        for (size_t i = 0; i < n; ++i) {
            smallest = values[i] < smallest ? values[i] : smallest;
            largest = values[i] > largest ? values[i] : largest;
        }
        return std::pair(int64_t(smallest), int64_t(largest));
    });
}

// Whether all codes lie in [-limit, limit]; NaN does not. Magnitudes are compared as integers, whose order is theirs with NaN behind all.
template <class T>
bool are_within(In<T, nb::ndim<2>> codes, T limit) {
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    constexpr Bits MAGNITUDE = std::numeric_limits<Bits>::max();
    const Bits highest = std::bit_cast<Bits>(limit);
    const T* const values = codes.data();
    const size_t n = codes.size();
    Bits beyond = 0;
    for (size_t i = 0; i < n; ++i) beyond |= (std::bit_cast<Bits>(values[i]) & MAGNITUDE) > highest;
    return !beyond;
}

Form form_of(int form) {
    require(form >= 0 && form <= 3, "form must be from 0 to 3, got " + std::to_string(form));
    return Form(form);
}

// Arrays of size 0 stand for what is not there.
template <class T>
class Histogram {
public:
    using Codes = In<T, nb::ndim<2>>;

    Histogram(Codes queries, Codes items, Levels levels, Own own, size_t n_levels, size_t n_bins, double delta, bool is_square,
              bool keeps_cells, size_t n_threads)
        : queries_(queries), items_(items), levels_(levels), own_(own), n_threads_(n_threads), keeps_cells_(keeps_cells),
          hist_(checked_pairs(n_levels, n_bins, delta, is_square), keeps_cells) {
        run(n_threads_, [&](Workers& workers) { return hist_.count(workers); });
    }

    bool has_negative_level() const { return hist_.has_negative_level(); }

    void counts(Out<T, nb::ndim<3>> out) const {
        const Pairs<T>& pairs = hist_.pairs();
        const size_t size = pairs.counts_a_row();
        require_shape("out", out, {pairs.n_queries, pairs.n_bins + 1, pairs.n_levels});
        std::vector<double> row(size + 3);  // reading may touch three further
        std::vector<int64_t> level_counts(pairs.n_levels);
        for (size_t q = 0; q < pairs.n_queries; ++q) {
            hist_.read(q, row.data(), level_counts.data());
            for (size_t c = 0; c < size; ++c) out.data()[q * size + c] = T(row[c]);
        }
    }

    void ap(int form, In<double, nb::ndim<1>> relevance, Out<T, nb::ndim<1>> values) {
        require_shape("relevance", relevance, {hist_.pairs().n_levels});
        const Form checked = form_of(form);
        const Relaxed<T> out = relaxed(values);
        run(n_threads_, [&](Workers& workers) { return relaxed_ap(hist_, out, checked, relevance.data(), workers); });
    }

    void ndcg(int form, In<double, nb::ndim<1>> gains, In<double, nb::ndim<1>> discount_sums, Out<T, nb::ndim<1>> values) {
        require_shape("gains", gains, {hist_.pairs().n_levels});
        require(discount_sums.size() >= 2, "discount_sums must have at least 2 values, got " + std::to_string(discount_sums.size()));
        const Form checked = form_of(form);
        const DiscountSums sums{discount_sums.data(), discount_sums.size()};
        const Relaxed<T> out = relaxed(values);
        run(n_threads_, [&](Workers& workers) { return relaxed_ndcg(hist_, out, checked, gains.data(), sums, workers); });
    }

    void pull_values(In<T, nb::ndim<1>> grad_values, Out<T, nb::ndim<2>> grad_queries, Out<T, nb::ndim<2>> grad_items) const {
        require(bool(grads_), "grad_values must come after values: call ap or ndcg of a histogram that keeps cells");
        require_shape("grad_values", grad_values, {hist_.pairs().n_queries});
        pull(grads_.get(), grad_values.data(), grad_queries, grad_items);
    }

    void pull_counts(In<T, nb::ndim<3>> grad_counts, Out<T, nb::ndim<2>> grad_queries, Out<T, nb::ndim<2>> grad_items) const {
        const Pairs<T>& pairs = hist_.pairs();
        require(keeps_cells_, "grad_counts must be those of a histogram that keeps cells");
        require_shape("grad_counts", grad_counts, {pairs.n_queries, pairs.n_bins + 1, pairs.n_levels});
        pull(grad_counts.data(), nullptr, grad_queries, grad_items);
    }

private:
    Pairs<T> checked_pairs(size_t n_levels, size_t n_bins, double delta, bool is_square) const {
        require(queries_.shape(1) >= 1, "queries must have at least one bit");
        require_shape("items", items_, {is_square ? queries_.shape(0) : items_.shape(0), queries_.shape(1)});
        require(n_bins >= 1 && n_bins <= 4096, "n_bins must be from 1 to 4096, got " + std::to_string(n_bins));
        require(n_levels >= 1 && n_levels <= 256, "n_levels must be from 1 to 256, got " + std::to_string(n_levels));
        require_shape("levels", levels_, {queries_.shape(0), items_.shape(0)});
        if (own_.size()) require_shape("own", own_, {queries_.shape(0)});
        return {queries_.data(), items_.data(), levels_of(levels_), own_.size() ? own_.data() : nullptr, queries_.shape(0), items_.shape(0),
                queries_.shape(1), n_levels, n_bins, delta, is_square};
    }

    Relaxed<T> relaxed(Out<T, nb::ndim<1>>& values) {
        const Pairs<T>& pairs = hist_.pairs();
        require_shape("values", values, {pairs.n_queries});
        if (keeps_cells_ && !grads_) grads_ = uninitialized<T>(pairs.n_queries * pairs.counts_a_row());
        return {pairs.n_queries, pairs.n_bins + 1, pairs.n_levels, values.data(), grads_.get()};
    }

    void pull(const T* grads, const T* weights, Out<T, nb::ndim<2>>& grad_queries, Out<T, nb::ndim<2>>& grad_items) const {
        const Pairs<T>& pairs = hist_.pairs();
        require_shape("grad_queries", grad_queries, {pairs.n_queries, pairs.n_bits});
        if (grad_items.size()) require_shape("grad_items", grad_items, {pairs.n_items, pairs.n_bits});
        T* const for_items = grad_items.size() ? grad_items.data() : nullptr;
        run(n_threads_, [&](Workers& workers) { return hist_.pull(grads, weights, grad_queries.data(), for_items, workers); });
    }

    const Codes queries_, items_;
    const Levels levels_;
    const Own own_;
    const size_t n_threads_;
    const bool keeps_cells_;
    SoftHistogram<T> hist_;
    Buffer<T> grads_;  // of the values by the counts
};

template <class T>
void define_histogram(nb::module_& m, const char* name) {
    using Codes = typename Histogram<T>::Codes;
    nb::class_<Histogram<T>>(m, name)
        .def_prop_ro("has_negative_level", &Histogram<T>::has_negative_level)
        .def("counts", &Histogram<T>::counts, nb::arg("out").noconvert())
        .def("ap", &Histogram<T>::ap, nb::arg("form"), nb::arg("relevance"), nb::arg("values").noconvert())
        .def("ndcg", &Histogram<T>::ndcg, nb::arg("form"), nb::arg("gains"), nb::arg("discount_sums"), nb::arg("values").noconvert())
        .def("pull_values", &Histogram<T>::pull_values, nb::arg("grad_values"), nb::arg("grad_queries").noconvert(),
             nb::arg("grad_items").noconvert())
        .def("pull_counts", &Histogram<T>::pull_counts, nb::arg("grad_counts"), nb::arg("grad_queries").noconvert(),
             nb::arg("grad_items").noconvert());
    m.def("soft_histogram",
          [](Codes queries, Codes items, Levels levels, Own own, size_t n_levels, size_t n_bins, double delta, bool is_square, bool keeps_cells,
             size_t n_threads) {
              return new Histogram<T>(queries, items, levels, own, n_levels, n_bins, delta, is_square, keeps_cells, n_threads);
          },
          nb::arg("queries"), nb::arg("items"), nb::arg("levels"), nb::arg("own"), nb::arg("n_levels"), nb::arg("n_bins"), nb::arg("delta"),
          nb::arg("is_square"), nb::arg("keeps_cells"), nb::arg("n_threads") = 1);
}

// Soft counts given as numbers: the closed form can be tested where no codes would lead to.
class GivenRows : public SoftRows {
public:
    GivenRows(In<double, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts) : counts_(counts), level_counts_(level_counts) {
        require(counts.shape(2) == 2, "counts must have 2 levels, got " + std::to_string(counts.shape(2)));
        require_shape("level_counts", level_counts, {counts.shape(0), 2});
    }

    Span read(size_t query, double* counts, int64_t* level_counts) const override {
        const size_t size = 2 * counts_.shape(1);
        std::copy_n(counts_.data() + query * size, size, counts);
        std::copy_n(level_counts_.data() + 2 * query, 2, level_counts);
        return span_of(counts, counts_.shape(1), 2);
    }

private:
    const In<double, nb::ndim<3>> counts_;
    const In<int64_t, nb::ndim<2>> level_counts_;
};

void ap_of_counts(In<double, nb::ndim<3>> counts, In<int64_t, nb::ndim<2>> level_counts, int form, Out<double, nb::ndim<1>> values,
                  Out<double, nb::ndim<3>> grads) {
    const GivenRows rows(counts, level_counts);
    require_shape("values", values, {counts.shape(0)});
    require_shape("grads", grads, {counts.shape(0), counts.shape(1), 2});
    const Relaxed<double> out{counts.shape(0), counts.shape(1), 2, values.data(), grads.data()};
    const Form checked = form_of(form);
    const double relevance[2] = {0, 1};
    run(1, [&](Workers& workers) { return relaxed_ap(rows, out, checked, relevance, workers); });
}

void polygammas(In<double, nb::ndim<1>> x, Out<double, nb::ndim<2>> out) {
    require_shape("out", out, {5, std::max(x.size() + 3, out.shape(1))});
    std::vector<double> points(x.size() + 3, 1.0);  // the kernel reads up to three points further
    std::copy_n(x.data(), x.size(), points.begin());
    soft_kernels().polygammas(points.data(), x.size(), out.shape(1), out.data());
}

}  // namespace

void define_objectives(nb::module_& m) {
    define_histogram<float>(m, "SoftHistogram32");
    define_histogram<double>(m, "SoftHistogram64");
    m.def("are_within", &are_within<float>, nb::arg("codes"), nb::arg("limit"));
    m.def("are_within", &are_within<double>, nb::arg("codes"), nb::arg("limit"));
    m.def("level_range", &level_range, nb::arg("levels"));
    m.def("ap_of_counts", &ap_of_counts, nb::arg("counts"), nb::arg("level_counts"), nb::arg("form"), nb::arg("values").noconvert(),
          nb::arg("grads").noconvert());
    m.def("polygammas", &polygammas, nb::arg("x"), nb::arg("out").noconvert());
}
