// What all queries of a search find, behind one another.
#pragma once
#include <memory>

#include "nearest.hpp"

namespace rankbits {

// Where each query is to find equally many items, they are written to their final place at once; else each query's are written apart,
// and copied in the end.
class Results {
public:
    explicit Results(size_t n_queries) : n_queries_(n_queries), counts_(n_queries, 0), apart_(n_queries) {}

    size_t n_queries() const { return n_queries_; }

    // Each query will find n items at most, and most of them as many.
    void expect(size_t n) {
        n_each_ = n;
        distances_.reset(new int32_t[n_queries_ * n]);  // not zeroed: most of it is written soon
        rows_.reset(new int64_t[n_queries_ * n]);
    }

    // Each query will find n items at most, but perhaps far fewer: only a little memory is set aside on that.
    void hope_for(size_t n) {
        if (n_queries_ > 0 && n <= (size_t{1} << 20) / n_queries_) expect(n);
    }

    // Once for a query, from any thread.
    void put(size_t q, Nearest& nearest) {
        const size_t n = counts_[q] = nearest.n_results();
        if (distances_) {
            nearest.write(distances_.get() + q * n_each_, rows_.get() + q * n_each_);
            return;
        }
        apart_[q].distances.resize(n);
        apart_[q].rows.resize(n);
        nearest.write(apart_[q].distances.data(), apart_[q].rows.data());
    }

    // Brings everything together; nothing can be put any more.
    void finish() {
        offsets_.reset(new int64_t[n_queries_ + 1]);
        offsets_[0] = 0;
        for (size_t q = 0; q < n_queries_; ++q) offsets_[q + 1] = offsets_[q] + static_cast<int64_t>(counts_[q]);
        const bool is_written = distances_ != nullptr;
        if (!is_written) {
            distances_.reset(new int32_t[size()]);
            rows_.reset(new int64_t[size()]);
        }
        for (size_t q = 0; q < n_queries_; ++q) {
            const auto to = static_cast<size_t>(offsets_[q]);
            if (is_written && to == q * n_each_) continue;
            const int32_t* distances = is_written ? distances_.get() + q * n_each_ : apart_[q].distances.data();
            const int64_t* rows = is_written ? rows_.get() + q * n_each_ : apart_[q].rows.data();
            std::copy_n(distances, counts_[q], distances_.get() + to);  // to is never behind, so that nothing is written over too early
            std::copy_n(rows, counts_[q], rows_.get() + to);
            apart_[q] = {};
        }
    }

    // Once it is finished: items of query q stand between offsets[q] and offsets[q + 1].
    size_t size() const { return static_cast<size_t>(offsets_[n_queries_]); }
    std::unique_ptr<int64_t[]> take_offsets() { return std::move(offsets_); }
    std::unique_ptr<int32_t[]> take_distances() { return std::move(distances_); }
    std::unique_ptr<int64_t[]> take_rows() { return std::move(rows_); }

private:
    struct Apart {
        std::vector<int32_t> distances;
        std::vector<int64_t> rows;
    };

    size_t n_queries_, n_each_ = 0;
    std::vector<size_t> counts_;
    std::vector<Apart> apart_;
    std::unique_ptr<int32_t[]> distances_;
    std::unique_ptr<int64_t[]> rows_, offsets_;
};

}  // namespace rankbits
