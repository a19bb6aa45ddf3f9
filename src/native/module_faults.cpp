// Bindings of watches over mapped files.
#include "faults.hpp"
#include "module.hpp"

void define_faults(nb::module_& m) {
    m.def(
        "watch_mapping", [](In<uint8_t, nb::ndim<1>> bytes, int file) { return watch_mapping(bytes.data(), bytes.size(), file); },
        nb::arg("bytes").noconvert(), nb::arg("file"));
    m.def("look_at_mapping", [](int watch) { return static_cast<int>(look_at_mapping(watch)); }, nb::arg("watch"));
    m.def("accept_mapping", &accept_mapping, nb::arg("watch"));
    m.def("release_mapping", &release_mapping, nb::arg("watch"));
}
