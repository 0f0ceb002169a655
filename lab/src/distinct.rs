//! Lists in which each item is once: names of sources, metrics, settings.

use indexmap::IndexMap;

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
    let mut named: IndexMap<String, Vec<&str>> = IndexMap::new();
    for (name, reason) in missing {
        named.entry(reason).or_default().push(name);
    }
    let of_reason = |(reason, names): (&String, &Vec<&str>)| match names.len() {
        count if count > NAMES_MAX => format!("{count} {many} ({reason})"),
        _ => format!("{} ({reason})", names.join(", ")),
    };
    let reasons = named.iter().map(of_reason).collect::<Vec<_>>().join("; ");
    (!named.is_empty()).then(|| format!("No figure: {reasons}."))
}
