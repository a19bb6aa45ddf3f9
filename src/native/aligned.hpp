// Arguments begin where their numbers may lie: to read a double from an odd address is undefined, and loops over vectors of them may fault.
// NumPy has such arrays, as views of bytes and of records. One that is read is copied; one that is written to is refused, as a wrong type is.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "buffers.hpp"

namespace rankbits {

template <class... Types>
class Aligned : public nanobind::ndarray<Types...> {
public:
    using Base = nanobind::ndarray<Types...>;
    Aligned() = default;
    explicit Aligned(Base&& array) : Base(std::move(array)) {}

    static constexpr bool IS_READ_ONLY = Base::ReadOnly;

    bool is_aligned() const { return reinterpret_cast<uintptr_t>(this->data()) % this->itemsize() == 0; }

    // The same numbers in memory of their own.
    Aligned copy() const {
        size_t shape[64];  // NumPy has no more axes
        for (size_t axis = 0; axis < this->ndim(); ++axis) shape[axis] = this->shape(axis);
        Buffer<uint8_t> memory = uninitialized<uint8_t>(this->nbytes());
        std::memcpy(memory.get(), this->data(), this->nbytes());
        const nanobind::capsule owner(memory.get(), [](void* p) noexcept { std::free(p); });
        return Aligned(Base(memory.release(), this->ndim(), shape, owner, nullptr, this->dtype()));
    }
};

}  // namespace rankbits

template <class... Types>
struct nanobind::detail::type_caster<rankbits::Aligned<Types...>> {
    using Array = rankbits::Aligned<Types...>;
    NB_TYPE_CASTER(Array, make_caster<ndarray<Types...>>::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        make_caster<ndarray<Types...>> plain;
        if (!plain.from_python(source, flags, cleanup)) return false;
        value = Array(std::move(plain.value));
        if (value.is_aligned()) return true;
        if constexpr (!Array::IS_READ_ONLY) return false;
        try {
            value = value.copy();
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }
};
