// A real-valued query: what each half byte of a code adds to its score, exactly and as bytes.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "real.hpp"

namespace rankbits {

class RealQuery {
public:
    RealQuery(const RealNumbers& numbers, size_t query, size_t width) : halves_(2 * width * 16), tables_(2 * width * 16) {
        for (size_t half = 0; half < 2 * width; ++half) {
            if (numbers.are_tables()) {
                std::copy_n(table_of_half(numbers.row(query), numbers.n_bits, half), 16, halves_.data() + 16 * half);
            } else {
                add_up(numbers.row(query), numbers.n_bits, half);
            }
        }
        round(width);
    }

    const uint8_t* tables() const { return tables_.data(); }

    // The score of an item, in the order of sums that re-ranking has: halves of a byte, then bytes.
    double score(const uint8_t* plane, size_t width) const {
        double sum = 0.0;
        for (size_t k = 0; k < width; ++k) {
            const double* low = halves_.data() + 32 * k;
            const uint8_t byte = plane[k * GROUP];
            sum += low[byte & 15] + low[16 + (byte >> 4)];
        }
        return sum;
    }

    // The smallest sum of bytes of an item whose score may be at least `score`; 0 also where that is no number.
    int limit(double score) const {
        const double least = (score - slack_ - smallest_) / unit_;
        return least > 0 ? static_cast<int>(std::ceil(std::min<double>(least, MAX_SUM))) : 0;
    }

    // The same as (score - shift) * scale, for scores that differ from item to item.
    float scale() const { return static_cast<float>(1 / unit_); }
    float shift() const { return static_cast<float>((smallest_ + slack_) / unit_ + 0.01); }  // with room for rounding

private:
    void add_up(const double* weights, size_t n_bits, size_t half) {
        double* sums = halves_.data() + 16 * half;
        sums[0] = 0.0;
        for (size_t bit = 0; bit < 4; ++bit) {
            const size_t place = half / 2 * 8 + (half % 2 ? 3 : 7) - bit, n = size_t{1} << bit;
            const double weight = place < n_bits ? weights[place] : 0.0;
            for (size_t value = 0; value < n; ++value) {
                sums[n + value] = sums[value] + weight;
                sums[value] -= weight;
            }
        }
    }

    // Bytes count units above the smallest sum of each half. The unit is such that no half needs more than an entry holds, nor a whole
    // code more than MAX_SUM. What rounding may take away in all, with a margin for that of floating point, is slack.
    void round(size_t width) {
        const size_t n_halves = 2 * width;
        const double most = std::min<double>(MAX_ENTRY, MAX_SUM / static_cast<int>(n_halves));
        double widest = 0.0, total = 0.0;
        for (size_t half = 0; half < n_halves; ++half) {
            const auto [least, largest] = std::minmax_element(halves_.begin() + 16 * half, halves_.begin() + 16 * (half + 1));
            widest = std::max(widest, *largest - *least);
            total += std::max(std::fabs(*least), std::fabs(*largest));
        }
        unit_ = widest > 0 ? widest / most : 1.0;
        slack_ = 1e-6 * total;
        for (size_t half = 0; half < n_halves; ++half) {
            const double *sums = halves_.data() + 16 * half, least = *std::min_element(sums, sums + 16);
            double lost = 0.0;
            for (size_t value = 0; value < 16; ++value) {
                const double entry = std::min(most, std::round((sums[value] - least) / unit_));
                tables_[16 * half + value] = static_cast<uint8_t>(entry);
                lost = std::max(lost, sums[value] - least - entry * unit_);
            }
            smallest_ += least;
            slack_ += lost;
        }
    }

    std::vector<double> halves_;
    std::vector<uint8_t> tables_;
    double unit_ = 1.0, smallest_ = 0.0, slack_ = 0.0;
};

}  // namespace rankbits
