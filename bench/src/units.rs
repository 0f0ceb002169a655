//! Numbers as people read them: times, sizes, rates, each with three significant figures.

/// A time in nanoseconds with the unit that keeps it short.
pub fn nanoseconds(ns: f64) -> String {
    let text = in_units(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]);
    if ns.is_finite() { text } else { figures(ns) }
}

/// In the first of these units of which it is one at least, once it is rounded, or else the last.
fn in_units(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(one, _)| value >= 0.9995 * one);
    let (one, unit) = fitting.unwrap_or(&units[units.len() - 1]);
    format!("{} {unit}", figures(value / one))
}

/// A size with the binary unit that keeps it short.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // From here on it would be rounded to 1024.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let rounded = if value.fract() == 0.0 { format!("{value:.0}") } else { figures(value) };
    format!("{rounded} {}", UNITS[unit])
}

/// A rate with the prefix that keeps it short.
pub fn per_second(rate: f64) -> String {
    in_units(rate, &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")])
}

/// A count with commas between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let thousands = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    thousands.collect::<Vec<_>>().join(",")
}

/// Three significant figures, without an exponent.
pub fn figures(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "–".to_owned(),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A ratio: three significant figures, or two where it is less than a tenth, without an exponent.
pub fn ratio(value: f64) -> String {
    /// Ratios as good as none have no more than so many places.
    const PLACES_MAX: usize = 9;
    match value.abs() {
        size if size >= 0.0995 || size == 0.0 || !size.is_finite() => figures(value),
        size => {
            let places = (1.0 - size.log10().floor()) as usize;
            format!("{value:.0$}", places.min(PLACES_MAX))
        }
    }
}

/// A percentage without needless zeros: 99.9, 50, 0.
pub fn percent(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It began outside the picture, left of the axis.
    #[test]
    fn a_rate_of_ten_thousand_millions_was_wider_than_its_axis() {
        assert_eq!(per_second(1e10), "10.0 G/s");
        assert_eq!(per_second(999.4e6), "999 M/s");
    }

    #[test]
    fn a_rate_that_rounds_to_a_thousand_had_the_smaller_unit() {
        let written = [999.6e6, 999.6e3, 999.6].map(per_second);
        assert_eq!(written, ["1.00 G/s", "1.00 M/s", "1.00 k/s"]);
    }

    #[test]
    fn numbers_have_the_figures_that_people_read_and_a_fitting_unit() {
        type Written = (fn(f64) -> String, f64, &'static str);
        let all: [Written; 27] = [
            (nanoseconds, 0.28, "0.28 ns"),
            (nanoseconds, 12.94, "12.9 ns"),
            (nanoseconds, 999.6, "1.00 µs"),
            (nanoseconds, 16_000_000.0, "16.0 ms"),
            (nanoseconds, f64::NAN, "–"),
            (figures, 1234.5, "1234"),
            (figures, f64::INFINITY, "–"),
            (ratio, 1_234.5, "1234"),
            (ratio, 1.0, "1.00"),
            (ratio, 0.123, "0.12"),
            (ratio, 0.0999, "0.10"),
            (ratio, 0.0123, "0.012"),
            (ratio, 0.000_98, "0.00098"),
            (ratio, 0.0, "0.00"),
            (ratio, 1e-12, "0.000000000"),
            (ratio, f64::INFINITY, "–"),
            (ratio, f64::NAN, "–"),
            (|size| bytes(size as u64), 49_152.0, "48 KiB"),
            (|size| bytes(size as u64), 1536.0, "1.50 KiB"),
            (|size| bytes(size as u64), 12.0, "12 B"),
            (|size| bytes(size as u64), 1_048_063.0, "1023 KiB"),
            (|size| bytes(size as u64), 1_048_575.0, "1.00 MiB"),
            (|number| count(number as u64), 1_234_567.0, "1,234,567"),
            (|number| count(number as u64), 100.0, "100"),
            (percent, 99.9, "99.9"),
            (percent, 50.0, "50"),
            (percent, 0.0, "0"),
        ];
        for (write, value, text) in all {
            assert_eq!(write(value), text);
        }
    }
}
