// Bindings of watches over mapped files.
#include "faults.hpp"
#include "module.hpp"

void define_faults(nb::module_& m) {
    m.def(
        "watch_mapping", [](In<uint8_t, nb::ndim<1>> bytes, int file) { return watch_mapping(bytes.data(), bytes.size(), file); },
        nb::arg("bytes").noconvert(), nb::arg("file"));
    m.def("look_at_mapping", [](int watch) { return static_cast<int>(look_at_mapping(watch)); }, nb::arg("watch"));
    m.def("accept_mapping", &accept_mapping, nb::arg("watch"));
    // The callback of a weak reference, which is native on purpose: Ctrl-C is raised between two steps of Python code, and what code that runs
    // when an object dies raises is lost.
    m.def(
        "release_mapping",
        [](nb::handle watch) {
            if (!nb::hasattr(watch, "number")) return;  // it was interrupted while it was made
            release_mapping(nb::cast<int>(watch.attr("number")));
            nb::handle table = watch.attr("table").ptr();
            if (PyDict_DelItem(table.ptr(), nb::object(watch.attr("key")).ptr()) != 0) PyErr_Clear();
        },
        nb::arg("watch"));
}
