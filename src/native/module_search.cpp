// Bindings of search.
#include "module.hpp"

#include "ivf.hpp"
#include "mih.hpp"
#include "near.hpp"
#include "scan.hpp"

namespace {

using Mask = In<uint64_t, nb::ndim<1>>;

Planes planes_of(const In<uint8_t, nb::ndim<3>>& planes, size_t n, size_t n_bits, const Mask& allowed) {
    return {planes.data(), allowed.size() ? allowed.data() : nullptr, n, planes.shape(1), n_bits};
}

template <class T>
nb::object array_of(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner));
}

// (offsets, distances, rows): what query q found stands between offsets[q] and offsets[q + 1].
nb::tuple arrays_of(const std::vector<std::vector<Found>>& results) {
    std::vector<int64_t> offsets(1, 0), rows;
    for (const auto& found : results) offsets.push_back(offsets.back() + static_cast<int64_t>(found.size()));
    rows.reserve(static_cast<size_t>(offsets.back()));
    std::vector<int32_t> distances;
    distances.reserve(rows.capacity());
    for (const auto& found : results) {
        for (const Found& item : found) {
            distances.push_back(static_cast<int32_t>(item.distance));
            rows.push_back(item.row);
        }
    }
    return nb::make_tuple(array_of(std::move(offsets)), array_of(std::move(distances)), array_of(std::move(rows)));
}

}  // namespace

void define_search(nb::module_& m) {
    m.def("to_planes",
          [](Matrix packed, Out<uint8_t, nb::ndim<3>> planes) {
              const nb::gil_scoped_release released;
              to_planes(packed.data(), packed.shape(0), packed.shape(1), planes.data());
          },
          nb::arg("packed"), nb::arg("planes").noconvert());
    m.def("from_planes",
          [](In<uint8_t, nb::ndim<3>> planes, In<int64_t, nb::ndim<1>> rows, Out<uint8_t, nb::ndim<2>> packed) {
              const nb::gil_scoped_release released;
              from_planes(planes.data(), rows.size() ? rows.data() : nullptr, packed.shape(0), packed.shape(1), packed.data());
          },
          nb::arg("planes"), nb::arg("rows"), nb::arg("packed").noconvert());
    m.def("scan",
          [](In<uint8_t, nb::ndim<3>> planes, size_t n, size_t n_bits, Mask allowed, Matrix queries, size_t k, int radius, bool is_complete,
             size_t n_threads) {
              std::vector<std::vector<Found>> results(queries.shape(0));
              run(n_threads, [&](Workers& workers) {
                  return scan(planes_of(planes, n, n_bits, allowed), queries.data(), queries.shape(0), {k, radius, is_complete}, results.data(), workers);
              });
              return arrays_of(results);
          },
          nb::arg("planes"), nb::arg("n"), nb::arg("n_bits"), nb::arg("allowed"), nb::arg("queries"), nb::arg("k"), nb::arg("radius"),
          nb::arg("is_complete"), nb::arg("n_threads") = 1);

    nb::class_<Mih>(m, "Mih")
        .def("__init__",
             [](Mih* self, Matrix packed, size_t n_threads) {
                 std::optional<Mih> built;
                 run(n_threads, [&](Workers& workers) {
                     built = Mih::build(packed.data(), packed.shape(0), packed.shape(1), workers);
                     return built.has_value();
                 });
                 new (self) Mih(std::move(*built));
             },
             nb::arg("packed"), nb::arg("n_threads") = 1)
        .def_static("n_tables", &Mih::n_tables, nb::arg("n"), nb::arg("width"))
        .def_static("bytes_needed", &Mih::bytes_needed, nb::arg("n"), nb::arg("width"))
        .def("search",
             [](const Mih& self, Matrix queries, size_t n_bits, Mask allowed, size_t k, int radius, bool is_complete, uint64_t budget,
                size_t n_threads) {
                 std::vector<std::vector<Found>> results(queries.shape(0));
                 std::vector<uint8_t> is_finished(queries.shape(0), 0);
                 uint64_t cost = 0;
                 run(n_threads, [&](Workers& workers) {
                     return self.search(queries.data(), queries.shape(0), n_bits, allowed.size() ? allowed.data() : nullptr,
                                        {k, radius, is_complete}, budget, results.data(), is_finished.data(), &cost, workers);
                 });
                 return nb::make_tuple(arrays_of(results), array_of(std::move(is_finished)), cost);
             },
             nb::arg("queries"), nb::arg("n_bits"), nb::arg("allowed"), nb::arg("k"), nb::arg("radius"), nb::arg("is_complete"),
             nb::arg("budget"), nb::arg("n_threads") = 1);

    m.def("search_lists",
          [](In<uint8_t, nb::ndim<3>> planes, size_t n_bits, In<int64_t, nb::ndim<1>> starts, In<uint32_t, nb::ndim<1>> rows,
             In<uint8_t, nb::ndim<3>> centres, size_t n_centres, Mask allowed, Matrix queries, size_t k, int radius, bool is_complete,
             size_t n_probes, size_t n_threads) {
              const Lists lists{{planes.data(), nullptr, planes.shape(0) * GROUP, planes.shape(1), n_bits}, starts.data(), rows.data(),
                                {centres.data(), nullptr, n_centres, centres.shape(1), n_bits}};
              std::vector<std::vector<Found>> results(queries.shape(0));
              run(n_threads, [&](Workers& workers) {
                  return search_lists(lists, queries.data(), queries.shape(0), allowed.size() ? allowed.data() : nullptr,
                                      {k, radius, is_complete}, n_probes, results.data(), workers);
              });
              return arrays_of(results);
          },
          nb::arg("planes"), nb::arg("n_bits"), nb::arg("starts"), nb::arg("rows"), nb::arg("centres"), nb::arg("n_centres"),
          nb::arg("allowed"), nb::arg("queries"), nb::arg("k"), nb::arg("radius"), nb::arg("is_complete"), nb::arg("n_probes"),
          nb::arg("n_threads") = 1);
}
