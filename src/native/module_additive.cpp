// Bindings of the search for additive codes.
#include "additive.hpp"
#include "checks.hpp"
#include "module.hpp"

namespace {

constexpr size_t MAX_BOOKS = 8 * MAX_WIDTH / 4;

// Pairs of a codebook and an entry, one behind the other in memory.
const Change* changes_of(const In<uint16_t, nb::ndim<3>>& changes, size_t n_books) {
    static_assert(sizeof(Change) == 4);
    require(changes.shape(2) == 2, "changes must be pairs of a codebook and an entry");
    const auto* pairs = reinterpret_cast<const Change*>(changes.data());
    for (size_t i = 0; i < changes.size() / 2; ++i) {
        require(pairs[i].book < n_books && pairs[i].entry < ENTRIES, "changes must name codebooks that are there, and entries below 16");
    }
    return pairs;
}

}  // namespace

void define_additive(nb::module_& m) {
    m.def("improve_codes",
          [](In<double, nb::ndim<2>> products, In<double, nb::ndim<2>> shares, In<double, nb::ndim<1>> squares, double along,
             In<uint16_t, nb::ndim<3>> changes, size_t n_sweeps, Out<uint8_t, nb::ndim<2>> entries, size_t n_threads) {
              const size_t n = entries.shape(1), n_rows = entries.shape(0);
              require(n >= 1 && n <= MAX_BOOKS, "entries must be of 1 to " + std::to_string(MAX_BOOKS) + " codebooks, got " + std::to_string(n));
              require_shape("products", products, {ENTRIES * n, ENTRIES * n});
              require_shape("shares", shares, {n_rows, ENTRIES * n});
              require_shape("squares", squares, {n_rows});
              require_range("entries", entries.data(), entries.size(), 0, ENTRIES);
              const Codebooks books{n, products.data(), changes_of(changes, n), changes.shape(0), changes.shape(1), n_sweeps, along};
              run(n_threads, [&](Workers& workers) {
                  return improve_codes(books, shares.data(), squares.data(), n_rows, entries.data(), workers);
              });
          },
          nb::arg("products"), nb::arg("shares"), nb::arg("squares"), nb::arg("along"), nb::arg("changes"), nb::arg("n_sweeps"),
          nb::arg("entries").noconvert(), nb::arg("n_threads") = 1);
}
