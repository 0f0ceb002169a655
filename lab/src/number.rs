//! Numbers as users type them, and what to tell those who typed something else.
//!
//! The standard library's errors ("invalid float literal") are a programmer's words. Every number
//! of a flag or of a workload file is read here, so that all of them are refused alike.

use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::RangedI64ValueParser;

/// Takes whole numbers within these limits as the values of a flag.
pub(crate) fn within(limits: RangeInclusive<i64>) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(limits)
}

/// A whole number; its limits are the caller's.
pub(crate) fn whole<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| no_whole(text, error.kind()))
}

/// Why a text is no whole number.
pub(crate) fn no_whole(text: &str, kind: &IntErrorKind) -> String {
    // A type without a sign calls a minus an invalid digit.
    let digits = text.strip_prefix('-').unwrap_or_default();
    let is_negative = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match kind {
        IntErrorKind::PosOverflow => format!("{text} is too large"),
        IntErrorKind::NegOverflow => format!("{text} is too small"),
        IntErrorKind::InvalidDigit if is_negative => {
            format!("{text} is too small: it is below 0")
        }
        _ => format!("{text:?} is not a whole number; write digits, as in 4"),
    }
}

/// The least number above 0, as a limit.
pub(crate) const ABOVE_0: f64 = f64::MIN_POSITIVE;

/// Takes numbers within these limits, which may have a fraction, as the values of a flag.
pub(crate) fn real_within(
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let no_number = |_| format!("{text:?} is not a number; write digits, as in 99.5");
        let number = text.parse().map_err(no_number)?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let least =
            if least == ABOVE_0 { "more than 0".to_owned() } else { format!("at least {least}") };
        Err(format!("{text} is out of range: {least}, at most {most}"))
    }
}
