// Bindings of search.
#include "module.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "ivf.hpp"
#include "mih.hpp"
#include "near.hpp"
#include "real.hpp"
#include "scan.hpp"

namespace {

using Mask = In<uint64_t, nb::ndim<1>>;
using PlaneArray = In<uint8_t, nb::ndim<3>>;

constexpr size_t FACTOR_BYTES = 2;  // that may stand before a code
constexpr size_t MAX_ROWS = (size_t{1} << 32) - 2 * GROUP;  // rows are 32-bit numbers in the kernels

// Sizes are checked here, once: behind this file they travel with their pointers.
[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

std::string text(size_t number) { return std::to_string(number); }

template <class Array>
std::string shape_of(const Array& array) {
    std::string shape = "(";
    for (size_t d = 0; d < array.ndim(); ++d) shape += (d ? ", " : "") + text(array.shape(d));
    return shape + ")";
}

size_t checked_width(size_t n_bits) {
    if (n_bits < 1 || n_bits > 8 * MAX_WIDTH) refuse("n_bits must be from 1 to 4096, got " + text(n_bits));
    return (n_bits + 7) / 8;
}

template <class Array>
void check_planes(const char* name, const Array& planes, size_t n, size_t width) {
    if (n > MAX_ROWS) refuse(std::string(name) + " must hold at most " + text(MAX_ROWS) + " items, got " + text(n));
    if (planes.shape(0) != groups_of(n) || planes.shape(1) != width || planes.shape(2) != GROUP) {
        refuse(std::string(name) + " of " + text(n) + " codes of " + text(width) + " bytes must have shape (" + text(groups_of(n)) + ", " +
               text(width) + ", 64), got " + shape_of(planes));
    }
}

void check_queries(const Matrix& queries, size_t width) {
    if (queries.shape(1) != width) refuse("queries must have " + text(width) + " bytes a code, got " + text(queries.shape(1)));
}

// The words, or null if there are none, which stands for all.
const uint64_t* words_of(const Mask& allowed, size_t n) {
    if (allowed.size() == 0) return nullptr;
    if (allowed.size() != groups_of(n)) {
        refuse("allowed must be empty or have " + text(groups_of(n)) + " words for " + text(n) + " items, got " + text(allowed.size()));
    }
    return allowed.data();
}

Planes planes_of(const PlaneArray& planes, size_t n, size_t n_bits, const Mask& allowed) {
    const size_t width = checked_width(n_bits);
    check_planes("planes", planes, n, width);
    return {planes.data(), words_of(allowed, n), n, width, n_bits};
}

// Lists with the arrays they point into. Starts are copied: they lead to memory, and nobody may change them later.
class ListArrays {
public:
    ListArrays(PlaneArray planes, size_t n_bits, const In<int64_t, nb::ndim<1>>& starts, In<uint32_t, nb::ndim<1>> rows, size_t n_rows,
               PlaneArray centres, size_t n_centres)
        : planes_(std::move(planes)), rows_(std::move(rows)), centres_(std::move(centres)), starts_(starts.data(), starts.data() + starts.size()) {
        const size_t width = checked_width(n_bits), n_places = planes_.shape(0) * GROUP;
        check_planes("planes", planes_, n_places, width);
        check_planes("centres", centres_, n_centres, width);
        check_starts(n_centres);
        check_rows(n_places, n_rows);
        lists_ = {{planes_.data(), nullptr, n_places, width, n_bits}, starts_.data(), rows_.data(), sizes_.data(), n_rows,
                  {centres_.data(), nullptr, n_centres, width, n_bits}};
    }

    ListArrays(const ListArrays&) = delete;  // lists_ points into this one

    const Lists& get() const { return lists_; }

private:
    void check_starts(size_t n_centres) const {
        if (starts_.size() != n_centres + 1) {
            refuse("starts must be one more than the " + text(n_centres) + " centres, got " + text(starts_.size()));
        }
        if (starts_.front() != 0 || starts_.back() != static_cast<int64_t>(planes_.shape(0)) || !std::is_sorted(starts_.begin(), starts_.end())) {
            refuse("starts must ascend from 0 to the number of groups, " + text(planes_.shape(0)));
        }
    }

    void check_rows(size_t n_places, size_t n_rows) {
        if (n_rows > MAX_ROWS) refuse("n_rows must be at most " + text(MAX_ROWS) + ", got " + text(n_rows));
        if (rows_.size() != n_places) refuse("rows must be 64 to a group, " + text(n_places) + ", got " + text(rows_.size()));
        for (size_t list = 0; list + 1 < starts_.size(); ++list) {
            const uint32_t* first = rows_.data() + static_cast<size_t>(starts_[list]) * GROUP;
            const uint32_t* last = rows_.data() + static_cast<size_t>(starts_[list + 1]) * GROUP;
            const uint32_t* end = std::find(first, last, NO_ROW);
            const uint32_t* wrong = std::find_if(first, end, [&](uint32_t row) { return row >= n_rows; });
            if (wrong != end) refuse("rows must be below " + text(n_rows) + " or 4294967295, got " + text(*wrong));
            if (std::any_of(end, last, [](uint32_t row) { return row != NO_ROW; })) refuse("rows of a list must all stand before its first 4294967295");
            sizes_.push_back(static_cast<uint32_t>(end - first));
        }
    }

    PlaneArray planes_;
    In<uint32_t, nb::ndim<1>> rows_;
    PlaneArray centres_;
    std::vector<int64_t> starts_;
    std::vector<uint32_t> sizes_;
    Lists lists_{};
};

constexpr size_t FEW = 4096;  // numbers that are copied faster into an array of NumPy's than handed over to one

const nb::object& numpy_empty() {
    static const auto* empty = new nb::object(nb::module_::import_("numpy").attr("empty"));  // never freed: Python may have ended before
    return *empty;
}

template <class T>
nb::object array_of(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner));
}

template <class T>
nb::object array_of(std::unique_ptr<T[]> values, size_t n, const char* dtype) {
    if (n > FEW) {
        T* const data = values.release();
        nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, T>(data, {n}, owner));
    }
    nb::object array = numpy_empty()(n, dtype);
    std::copy_n(values.get(), n, nb::cast<nb::ndarray<T, nb::ndim<1>>>(array, false).data());
    return array;
}

// (offsets, distances, rows): what query q found stands between offsets[q] and offsets[q + 1].
nb::tuple arrays_of(Results& results) {
    results.finish();
    const size_t n = results.size();
    return nb::make_tuple(array_of(results.take_offsets(), results.n_queries() + 1, "int64"), array_of(results.take_distances(), n, "int32"),
                          array_of(results.take_rows(), n, "int64"));
}

struct MihArrays {
    Mih tables;
    size_t n_bits;
};

}  // namespace

void define_search(nb::module_& m) {
    define_rescore(m);
    m.def("to_planes",
          [](Matrix packed, Out<uint8_t, nb::ndim<3>> planes) {
              check_planes("planes", planes, packed.shape(0), packed.shape(1));
              const nb::gil_scoped_release released;
              to_planes(packed.data(), packed.shape(0), packed.shape(1), planes.data());
          },
          nb::arg("packed"), nb::arg("planes").noconvert());
    m.def("from_planes",
          [](PlaneArray planes, In<int64_t, nb::ndim<1>> rows, Out<uint8_t, nb::ndim<2>> packed) {
              const size_t n_places = planes.shape(0) * GROUP, n = packed.shape(0);
              check_planes("planes", planes, n_places, packed.shape(1));
              if (rows.size() ? rows.size() != n : n > n_places) {
                  refuse("packed must have a row for each of rows, or without rows at most " + text(n_places) + ", got " + text(n) +
                         " and rows " + text(rows.size()));
              }
              for (size_t i = 0; i < rows.size(); ++i) {
                  const int64_t row = rows.data()[i];
                  if (row < 0 || row >= static_cast<int64_t>(n_places)) {
                      refuse("rows must be from 0 to " + std::to_string(static_cast<int64_t>(n_places) - 1) + ", got " + std::to_string(row));
                  }
              }
              const nb::gil_scoped_release released;
              from_planes(planes.data(), rows.size() ? rows.data() : nullptr, n, packed.shape(1), packed.data());
          },
          nb::arg("planes"), nb::arg("rows"), nb::arg("packed").noconvert());
    m.def("scan",
          [](PlaneArray array, size_t n, size_t n_bits, Mask allowed, Matrix queries, size_t k, int radius, bool is_complete,
             size_t n_threads) {
              const Planes planes = planes_of(array, n, n_bits, allowed);
              check_queries(queries, planes.width);
              Results results(queries.shape(0));
              run(n_threads, [&](Workers& workers) {
                  return scan(planes, queries.data(), {k, radius, is_complete}, results, workers);
              });
              return arrays_of(results);
          },
          nb::arg("planes"), nb::arg("n"), nb::arg("n_bits"), nb::arg("allowed"), nb::arg("queries"), nb::arg("k"), nb::arg("radius"),
          nb::arg("is_complete"), nb::arg("n_threads") = 1);

    m.def("scan_real",
          [](PlaneArray array, size_t n, size_t n_bits, Mask allowed, In<double, nb::ndim<2>> weights, In<double, nb::ndim<2>> correction,
             Out<float, nb::ndim<2>> scores, Out<int64_t, nb::ndim<2>> rows, Out<int64_t, nb::ndim<1>> counts, size_t n_threads) {
              const size_t width = checked_width(n_bits), n_extra = array.shape(1) == width + FACTOR_BYTES ? FACTOR_BYTES : 0;
              check_planes("planes", array, n, width + n_extra);
              const Planes planes{array.data(), words_of(allowed, n), n, width, n_bits, n_extra};
              if (correction.size() && (n_extra == 0 || correction.shape(0) != 3 || correction.shape(1) != 256)) {
                  refuse("correction must be empty, or (3, 256) for planes with two bytes before each code, got " + shape_of(correction));
              }
              const Correction corrected{correction.data(), correction.data() + 256, correction.data() + 512};
              const size_t n_queries = weights.shape(0);
              const RealNumbers numbers{weights.data(), weights.shape(1), n_bits};
              if (numbers.are_tables() && numbers.n_columns != 16 * ((n_bits + 3) / 4)) {
                  refuse("weights must have a number for each of " + text(n_bits) + " bits, or 16 for every four of them, got " + text(numbers.n_columns));
              }
              if (scores.shape(0) != n_queries || rows.shape(0) != n_queries || counts.size() != n_queries || scores.shape(1) != rows.shape(1)) {
                  refuse("scores, rows and counts must have a row for each of " + text(n_queries) + " queries");
              }
              const RealResults results{scores.shape(1), scores.data(), rows.data(), counts.data()};
              run(n_threads, [&](Workers& workers) {
                  return scan_real(planes, numbers, n_queries, correction.size() ? &corrected : nullptr, results, workers);
              });
          },
          nb::arg("planes"), nb::arg("n"), nb::arg("n_bits"), nb::arg("allowed"), nb::arg("weights"), nb::arg("correction"),
          nb::arg("scores").noconvert(), nb::arg("rows").noconvert(), nb::arg("counts").noconvert(), nb::arg("n_threads") = 1);

    nb::class_<MihArrays>(m, "Mih")
        .def("__init__",
             [](MihArrays* self, PlaneArray planes, size_t n, size_t n_bits, bool copies, size_t n_threads) {
                 const size_t width = checked_width(n_bits);
                 check_planes("planes", planes, n, width);
                 std::optional<Mih> built;
                 run(n_threads, [&](Workers& workers) {
                     built = Mih::build(planes.data(), n, width, copies, workers);
                     return built.has_value();
                 });
                 new (self) MihArrays{std::move(*built), n_bits};
             },
             nb::arg("planes"), nb::arg("n"), nb::arg("n_bits"), nb::arg("copies") = true, nb::arg("n_threads") = 1)
        .def_static("cut",
                    [](size_t n, size_t width, bool copies) {
                        const Cut cut = Mih::cut(n, width, copies);
                        return nb::make_tuple(cut.n_tables, cut.n_bits);
                    },
                    nb::arg("n"), nb::arg("width"), nb::arg("copies") = true)
        .def_static("bytes_needed", &Mih::bytes_needed, nb::arg("n"), nb::arg("width"), nb::arg("copies") = true)
        .def("search",
             [](const MihArrays& arrays, Matrix queries, size_t n_bits, Mask allowed, size_t k, int radius, bool is_complete, uint64_t budget,
                size_t n_threads) {
                 const Mih& self = arrays.tables;
                 if (n_bits != arrays.n_bits) refuse("n_bits must be " + text(arrays.n_bits) + " as of the tables, got " + text(n_bits));
                 check_queries(queries, self.width());
                 const uint64_t* words = words_of(allowed, self.size());
                 Results results(queries.shape(0));
                 std::vector<uint8_t> is_finished(queries.shape(0), 0);
                 uint64_t cost = 0;
                 run(n_threads, [&](Workers& workers) {
                     return self.search(queries.data(), n_bits, words, {k, radius, is_complete}, budget, results, is_finished.data(), &cost,
                                        workers);
                 });
                 return nb::make_tuple(arrays_of(results), array_of(std::move(is_finished)), cost);
             },
             nb::arg("queries"), nb::arg("n_bits"), nb::arg("allowed"), nb::arg("k"), nb::arg("radius"), nb::arg("is_complete"),
             nb::arg("budget"), nb::arg("n_threads") = 1);

    nb::class_<ListArrays>(m, "Lists")
        .def(nb::init<PlaneArray, size_t, const In<int64_t, nb::ndim<1>>&, In<uint32_t, nb::ndim<1>>, size_t, PlaneArray, size_t>(),
             nb::arg("planes"), nb::arg("n_bits"), nb::arg("starts"), nb::arg("rows"), nb::arg("n_rows"), nb::arg("centres"),
             nb::arg("n_centres"))
        .def("search",
             [](const ListArrays& self, Matrix queries, Mask allowed, size_t k, int radius, bool is_complete, size_t n_probes, size_t n_threads) {
                 const Lists& lists = self.get();
                 check_queries(queries, lists.items.width);
                 if (n_probes < 1) refuse("n_probes must be 1 or more, got 0");
                 const uint64_t* words = words_of(allowed, lists.n_rows);
                 Results results(queries.shape(0));
                 run(n_threads, [&](Workers& workers) {
                     return search_lists(lists, queries.data(), words, {k, radius, is_complete}, n_probes, results, workers);
                 });
                 return arrays_of(results);
             },
             nb::arg("queries"), nb::arg("allowed"), nb::arg("k"), nb::arg("radius"), nb::arg("is_complete"), nb::arg("n_probes"),
             nb::arg("n_threads") = 1);
}
