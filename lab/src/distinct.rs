//! Lists in which each item is once: names of sources, metrics, settings.

/// The items, each once, in the order in which they came first.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Who has no figure, and why, if there is anybody: "a, b (why); c (why not)"; of many for one
/// reason the number, with what they are.
pub(crate) fn no_figure<'a>(
    missing: impl IntoIterator<Item = (&'a str, String)>,
    many: &str,
) -> Option<String> {
    const NAMES_MAX: usize = 4;
    let named: Vec<_> = missing.into_iter().collect();
    let of_reason = |reason: &String| {
        let names: Vec<&str> =
            named.iter().filter(|(_, own)| own == reason).map(|(name, _)| *name).collect();
        match names.len() {
            count if count > NAMES_MAX => format!("{count} {many} ({reason})"),
            _ => format!("{} ({reason})", names.join(", ")),
        }
    };
    let reasons = distinct(named.iter().map(|(_, reason)| reason));
    let reasons = reasons.into_iter().map(of_reason).collect::<Vec<_>>().join("; ");
    (!named.is_empty()).then(|| format!("No figure: {reasons}."))
}
