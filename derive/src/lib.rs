//! `#[derive(Weigh)]`: see `quiescence::Weigh`, which is its trait and has its documentation.
//!
//! The parser reads what it has to, and no more: which fields there are, their types, and the
//! generics. It keeps the tokens of types as they came, with their spans and groups, so types from
//! macros are as good as others; and what the compiler says of a field points at it.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Sums what the fields own.
///
/// For structs and enums, with generics: each type parameter has to be `Weigh` as well.
#[proc_macro_derive(Weigh)]
pub fn derive_weigh(item: TokenStream) -> TokenStream {
    Item::parse(item).map_or_else(|(message, span)| error(message, span), Item::weigh)
}

/// What is wrong, and where.
type Fault = (&'static str, Span);

/// A type, as far as it matters.
struct Item {
    name: Ident,
    generics: Generics,
    /// The predicates of the `where` clause.
    predicates: Vec<TokenTree>,
    /// The variants of an enum; of a struct the one that it has.
    variants: Vec<Variant>,
}

/// Lifetimes, types and constants, with a comma behind each.
#[derive(Default)]
struct Generics {
    /// As they are declared, without a default.
    declared: TokenStream,
    arguments: TokenStream,
    /// What is asked of the types.
    bounds: TokenStream,
}

struct Variant {
    /// None of a struct.
    name: Option<Ident>,
    fields: Vec<Field>,
}

struct Field {
    /// None in a tuple.
    name: Option<Ident>,
    of: Vec<TokenTree>,
}

impl Item {
    fn parse(item: TokenStream) -> Result<Self, Fault> {
        let mut tokens = Tokens::new(item);
        tokens.attributes();
        tokens.visibility();
        let kind = tokens.ident()?;
        let is_enum = match kind.to_string().as_str() {
            "struct" => false,
            "enum" => true,
            _ => {
                return Err((
                    "a union does not know its field: implement Weigh by hand",
                    kind.span(),
                ));
            }
        };
        let name = tokens.ident()?;
        let generics = tokens.generics()?;
        // Of a tuple the fields come before the `where`.
        let unnamed = tokens.fields(Delimiter::Parenthesis)?;
        let predicates = tokens.predicates();
        let variants = if is_enum {
            enumerated(tokens.group(Delimiter::Brace).unwrap_or_default())?
        } else {
            let fields = tokens.fields(Delimiter::Brace)?.or(unnamed).unwrap_or_default();
            vec![Variant { name: None, fields }]
        };
        Ok(Self { name, generics, predicates, variants })
    }

    /// The implementation.
    fn weigh(self) -> TokenStream {
        let Generics { declared, arguments, bounds } = self.generics;
        let fields = self.variants.iter().flat_map(|variant| &variant.fields);
        let owns: TokenStream = fields
            .filter(|field| !field.is_function())
            .map(|field| quote("|| <$0 as ::quiescence::Weigh>::OWNS", &[stream(&field.of)]))
            .collect();
        let arms: TokenStream = self.variants.iter().map(Variant::arm).collect();
        // An enum without variants has no value either.
        let value = if self.variants.is_empty() { "*self" } else { "self" };
        quote(
            "#[automatically_derived]
            #[allow(deprecated)]
            impl<$0> ::quiescence::Weigh for $1<$2> where $3 $4 {
                const OWNS: ::core::primitive::bool = false $5;
                fn owned(&self) -> ::core::primitive::usize { match $6 { $7 } }
            }",
            &[
                declared,
                TokenTree::from(self.name.clone()).into(),
                arguments,
                stream(&self.predicates),
                bounds,
                owns,
                quote(value, &[]),
                arms,
            ],
        )
    }
}

impl Field {
    /// Whether it is a pointer to a function, which owns nothing: not every `for<'a> fn(&'a T)` is
    /// some `fn(A)`.
    fn is_function(&self) -> bool {
        let begins = ["fn", "for", "unsafe", "extern"];
        self.of.first().is_some_and(|first| begins.contains(&first_word(first).as_str()))
    }
}

impl Variant {
    /// What a value of it owns: an arm of the `match`.
    fn arm(&self) -> TokenStream {
        let path = match &self.name {
            Some(name) => quote("Self::$0", &[TokenTree::from(name.clone()).into()]),
            None => quote("Self", &[]),
        };
        let (mut pattern, mut sum) = (TokenStream::new(), quote("0_usize", &[]));
        for (number, field) in self.fields.iter().enumerate() {
            let span = field.of.first().map_or_else(Span::call_site, TokenTree::span);
            let binding =
                Ident::new(&format!("__weigh_{number}"), span.resolved_at(Span::mixed_site()));
            let binding: TokenStream = TokenTree::from(binding).into();
            // `S { 0: a }` is a pattern of a tuple, too.
            let name = match &field.name {
                Some(name) => TokenTree::from(name.clone()),
                None => proc_macro::Literal::usize_unsuffixed(number).into(),
            };
            pattern.extend(quote("$0: $1,", &[name.into(), binding.clone()]));
            if field.is_function() {
                continue;
            }
            sum.extend(quote(".saturating_add(::quiescence::Weigh::owned($0))", &[binding]));
        }
        quote("$0 { $1 } => $2,", &[path, pattern, sum])
    }
}

fn enumerated(body: TokenStream) -> Result<Vec<Variant>, Fault> {
    let mut tokens = Tokens::new(body);
    let mut variants = Vec::new();
    while tokens.peek().is_some() {
        tokens.attributes();
        let name = Some(tokens.ident()?);
        let unnamed = tokens.fields(Delimiter::Parenthesis)?;
        let fields = tokens.fields(Delimiter::Brace)?.or(unnamed).unwrap_or_default();
        tokens.discriminant();
        variants.push(Variant { name, fields });
    }
    Ok(variants)
}

/// Tokens that are read one by one.
struct Tokens {
    all: Vec<TokenTree>,
    at: usize,
}

impl Tokens {
    fn new(stream: TokenStream) -> Self {
        // `$lifetime` of a macro: a group of the apostrophe and the name.
        let ungrouped = |token: TokenTree| match (first_word(&token).as_str(), token) {
            ("'", TokenTree::Group(lifetime)) => lifetime.stream(),
            (_, other) => other.into(),
        };
        Self { all: stream.into_iter().flat_map(ungrouped).collect(), at: 0 }
    }

    fn peek(&self) -> Option<&TokenTree> {
        self.all.get(self.at)
    }

    fn next(&mut self) -> Option<TokenTree> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn is(&self, punct: char) -> bool {
        matches!(self.peek(), Some(TokenTree::Punct(found)) if found.as_char() == punct)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(TokenTree::Ident(found)) if found.to_string() == word)
    }

    fn ident(&mut self) -> Result<Ident, Fault> {
        match self.next() {
            Some(TokenTree::Ident(ident)) => Ok(ident),
            other => {
                let span = other.map_or_else(Span::call_site, |token| token.span());
                Err(("this is no type that derive(Weigh) knows", span))
            }
        }
    }

    fn group(&mut self, delimiter: Delimiter) -> Option<TokenStream> {
        let Some(TokenTree::Group(group)) = self.peek() else { return None };
        let inside = (group.delimiter() == delimiter).then(|| group.stream())?;
        self.at += 1;
        Some(inside)
    }

    /// The fields that stand in such a group, if there is one; in braces each has a name.
    fn fields(&mut self, delimiter: Delimiter) -> Result<Option<Vec<Field>>, Fault> {
        let Some(body) = self.group(delimiter) else { return Ok(None) };
        let (mut tokens, mut fields) = (Self::new(body), Vec::new());
        while tokens.peek().is_some() {
            tokens.attributes();
            tokens.visibility();
            let mut name = None;
            if delimiter == Delimiter::Brace {
                name = Some(tokens.ident()?);
                tokens.next(); // the colon
            }
            fields.push(Field { name, of: tokens.until_comma() });
        }
        Ok(Some(fields))
    }

    fn attributes(&mut self) {
        while self.is('#') {
            self.at += 1;
            self.group(Delimiter::Bracket);
        }
    }

    fn visibility(&mut self) {
        match self.peek() {
            // `$vis` of a macro: it may be empty, which a `$type` is not.
            Some(token @ TokenTree::Group(_)) => {
                self.at += usize::from(["", "pub"].contains(&first_word(token).as_str()));
            }
            Some(TokenTree::Ident(word)) if word.to_string() == "pub" => {
                self.at += 1;
                // `pub(crate)`; but of a tuple `pub (crate::A, B)` is a public field.
                if let Some(TokenTree::Group(group)) = self.peek() {
                    let words = group.stream().into_iter().map(|token| token.to_string());
                    let words: Vec<String> = words.collect();
                    let is_restricted = match words.as_slice() {
                        [only] => ["crate", "self", "super"].contains(&only.as_str()),
                        [first, ..] => first == "in",
                        [] => false,
                    };
                    if group.delimiter() == Delimiter::Parenthesis && is_restricted {
                        self.at += 1;
                    }
                }
            }
            _ => {}
        }
    }

    /// The tokens up to one that `ends` says, outside of angle brackets; that one is not taken.
    fn until(&mut self, ends: impl Fn(&TokenTree) -> bool) -> Vec<TokenTree> {
        let (mut taken, mut depth, mut is_arrow) = (Vec::new(), 0_u32, false);
        while let Some(token) = self.peek() {
            if depth == 0 && !is_arrow && ends(token) {
                break;
            }
            if let TokenTree::Punct(punct) = token {
                match punct.as_char() {
                    '<' => depth += 1,
                    '>' if !is_arrow => depth = depth.saturating_sub(1),
                    _ => {}
                }
                is_arrow = punct.as_char() == '-' && punct.spacing() == Spacing::Joint;
            } else {
                is_arrow = false;
            }
            taken.extend(self.next());
        }
        taken
    }

    /// The same up to a comma, which is passed.
    fn until_comma(&mut self) -> Vec<TokenTree> {
        let taken = self.until(|token| is_punct(token, ','));
        self.at += 1;
        taken
    }

    /// Passes a discriminant, if there is one, and the comma behind it. Where an operand may begin,
    /// and in the type of a cast, `<` opens generics, as in `f::<A, B>()`, `<A as T<B>>::C` and
    /// `1 as A<B, C>`; else it compares, or shifts.
    fn discriminant(&mut self) {
        let (mut may_begin, mut is_cast) = (true, false);
        while let Some(token) = self.next() {
            let goes_on = matches!(token, TokenTree::Ident(_)) || is_punct(&token, ':');
            is_cast = is_cast && goes_on || token.to_string() == "as";
            may_begin = match &token {
                TokenTree::Punct(punct) if punct.as_char() == ',' => return,
                TokenTree::Punct(punct) if punct.as_char() == '<' && may_begin => {
                    self.until(|token| is_punct(token, '>'));
                    self.at += 1;
                    false
                }
                TokenTree::Punct(punct) => {
                    punct.as_char() != '<' || punct.spacing() == Spacing::Alone
                }
                TokenTree::Ident(word) => {
                    is_cast || ["if", "in", "match", "return"].contains(&word.to_string().as_str())
                }
                _ => false,
            };
        }
    }

    fn generics(&mut self) -> Result<Generics, Fault> {
        let mut generics = Generics::default();
        if !self.is('<') {
            return Ok(generics);
        }
        self.at += 1;
        while !self.is('>') {
            self.attributes();
            let ends = |token: &TokenTree| [',', '>', '='].iter().any(|end| is_punct(token, *end));
            let declared = self.until(ends);
            if self.is('=') {
                self.until(|token| is_punct(token, ',') || is_punct(token, '>'));
            }
            if self.is(',') {
                self.at += 1;
            }
            let first = declared.first().map(TokenTree::to_string);
            let (name, argument, bound) = match first.as_deref() {
                Some("'") => (declared.get(..2), "$0,", ""),
                // In braces: a type may have the name of a constant, too.
                Some("const") => (declared.get(1..2), "{ $0 },", ""),
                _ => (declared.get(..1), "$0,", "$0: ::quiescence::Weigh,"),
            };
            let name = stream(name.ok_or(("this is no parameter", Span::call_site()))?);
            generics.declared.extend(quote("$0,", &[stream(&declared)]));
            generics.arguments.extend(quote(argument, std::slice::from_ref(&name)));
            generics.bounds.extend(quote(bound, &[name]));
        }
        self.at += 1;
        Ok(generics)
    }

    /// What stands behind `where`, with a comma behind it.
    fn predicates(&mut self) -> Vec<TokenTree> {
        if !self.is_word("where") {
            return Vec::new();
        }
        self.at += 1;
        let is_body = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        let mut predicates = self.until(|token| is_body(token) || is_punct(token, ';'));
        if predicates.last().is_some_and(|last| !is_punct(last, ',')) {
            predicates.push(Punct::new(',', Spacing::Alone).into());
        }
        predicates
    }
}

/// The first token's text, in a group of a macro's variable that one's.
fn first_word(token: &TokenTree) -> String {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            group.stream().into_iter().next().map_or_else(String::new, |first| first_word(&first))
        }
        other => other.to_string(),
    }
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

fn stream(tokens: &[TokenTree]) -> TokenStream {
    tokens.iter().cloned().collect()
}

/// The tokens of a text, in which `$0` and so on stand for others.
fn quote(text: &str, holes: &[TokenStream]) -> TokenStream {
    fill(text.parse().expect("a text of this file"), holes)
}

fn fill(tokens: TokenStream, holes: &[TokenStream]) -> TokenStream {
    let mut filled = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => {
                let number = tokens.next().map(|number| number.to_string());
                let number: usize =
                    number.and_then(|of| of.parse().ok()).expect("the hole's number");
                filled.extend(holes[number].clone());
            }
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), fill(group.stream(), holes));
                inside.set_span(group.span());
                filled.extend([TokenTree::from(inside)]);
            }
            other => filled.extend([other]),
        }
    }
    filled
}

fn error(message: &str, span: Span) -> TokenStream {
    let text = quote(&format!("::core::compile_error! {{ {message:?} }}"), &[]);
    text.into_iter()
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}
