// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The declaration of a tracker: `tracker!` or, if only its alert is declared, `record!`.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use proc_macro2::{Group, Span, TokenTree};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::token::{Brace, Paren};
use syn::{
    Attribute, Expr, ExprClosure, Ident, LitBool, LitInt, LitStr, Token, Visibility, parenthesized,
};

use crate::source::{Source, strings};
use crate::syntax::{after, block, comment, fail, number, rows, until_semicolon};
use crate::types::{C, Type, Types};

/// A tracker that declares its alert.
#[derive(Default)]
pub(crate) struct Tracker {
    pub(crate) name: String,
    /// Missing if only the alert is declared.
    pub(crate) control: Option<Control>,
    pub(crate) fields: Vec<Rc<Field>>,
    /// The fields of the trace event, in its order.
    pub(crate) stored: Vec<Rc<Field>>,
    /// The fields of the trace event, in the order of its text.
    pub(crate) printed: Vec<Rc<Field>>,
    /// The trace event's name for the alert's words after all fields.
    pub(crate) tail: Option<String>,
    pub(crate) points: Vec<Point>,
}

/// What a tracker has besides its alert.
#[derive(Default)]
pub(crate) struct Control {
    pub(crate) help: String,
    /// In nanoseconds; 0 if it is not a number.
    pub(crate) threshold: u64,
    /// Whether kernel threads pass the task filter, if there is one.
    pub(crate) tasks: Option<bool>,
    /// Names and comments.
    pub(crate) counters: Vec<(String, String)>,
    pub(crate) params: Vec<Param>,
}

/// A field of an alert.
pub(crate) struct Field {
    pub(crate) doc: String,
    pub(crate) name: String,
    /// Its name in the line.
    pub(crate) shown: String,
    /// `alert`, `end`, `pending`: only these lines have the field; `traced`, `kept`: no line has
    /// it. Empty: all lines have it.
    pub(crate) when: String,
    pub(crate) ty: Rc<Type>,
    pub(crate) word: usize,
    pub(crate) bit: usize,
    /// The words for its numbers, if there are any.
    pub(crate) words: Vec<String>,
}

/// A parameter.
pub(crate) struct Param {
    pub(crate) name: String,
    id: Ident,
    /// As in the file `trackers`; empty if `KINDS` does not have `id`.
    pub(crate) kind: String,
    /// The words that it takes, if it takes words.
    pub(crate) words: Vec<String>,
    pub(crate) default: String,
    pub(crate) help: String,
    pub(crate) is_fixed: bool,
}

/// A tracepoint, with the C types of its arguments.
pub(crate) struct Point {
    pub(crate) header: String,
    pub(crate) name: String,
    /// The option of the kernel's configuration that it needs.
    pub(crate) config: Option<String>,
    pub(crate) types: Vec<String>,
}

/// Kinds of parameters besides words, as in the file `trackers`, and what 0 stands for.
const KINDS: [(&str, &str, &str); 7] = [
    ("Id", "0-MAX|all", "0"),
    ("Switch", "0|1", "0"),
    ("Duration", "duration", "0"),
    ("Disk", "disk", "0"),
    ("NetDevice", "net-device|all", "all"),
    ("Names", "names|!names|all", "all"),
    ("Function", "function", "none"),
];

/// Reads the names in `list!`.
pub(crate) fn list() -> Result<Vec<String>> {
    let path = "rust/trackers.rs";
    let name = |input: ParseStream| -> syn::Result<String> {
        let name = input.parse::<Ident>()?.to_string();
        if input.parse::<Option<Token![if]>>()?.is_some() {
            while input.parse::<Option<Ident>>()?.is_some() {}
        }
        Ok(name)
    };
    let mut lists = Source::read(path)?.calls("list", |input| rows::<Token![,], _>(input, name))?;
    lists
        .pop()
        .with_context(|| format!("{path}: no list! {{ ... }}"))
}

/// Reads the declaration of a tracker; returns `None` if it declares no alert.
pub(crate) fn read(name: &str, types: &Types) -> Result<Option<Tracker>> {
    let mut reader = Reader {
        name,
        source: Source::read(&format!("rust/trackers/{name}.rs"))?,
        types,
    };
    let mut all = reader
        .source
        .calls("tracker", |input| reader.tracker(input))?;
    if let Some(it) = all.pop() {
        return Ok(Some(it).filter(|it| !it.fields.is_empty()));
    }
    let path = format!("rust/trackers/{name}/show.rs");
    if !Path::new(&path).exists() {
        return Ok(None);
    }
    reader.source = Source::read(&path)?;
    reader.detail()
}

impl Field {
    /// Whether it is in a line of an alert or of a pending event.
    pub(crate) fn is_in_line(&self) -> bool {
        self.when != "traced" && self.when != "kept"
    }

    fn is_in_trace_event(&self) -> bool {
        self.when != "pending" && self.when != "kept" && !matches!(self.ty.c, C::Absent)
    }
}

impl Tracker {
    /// Number of the alert's words that fields take.
    pub(crate) fn words(&self) -> usize {
        let fields = self.fields.iter();
        let ends = fields.map(|it| it.word + it.ty.bits.div_ceil(64));
        ends.max().unwrap_or(0)
    }
}

/// What a declaration refers to.
struct Reader<'a> {
    /// The tracker's name.
    name: &'a str,
    /// The file of the declaration.
    source: Source,
    types: &'a Types,
}

impl Reader<'_> {
    /// Parses the contents of `tracker! { }`.
    fn tracker(&self, input: ParseStream) -> syn::Result<Tracker> {
        let name: Ident = input.parse()?;
        if name != self.name {
            return fail(
                name.span(),
                "the name of the tracker is not that of the file",
            );
        }
        input.parse::<Token![:]>()?;
        let mut control = Control {
            help: input.parse::<LitStr>()?.value(),
            ..Control::default()
        };
        input.parse::<Token![;]>()?;
        let mut tracker = self.parts(input, Vec::new(), &mut control)?;
        if !tracker.fields.is_empty() {
            if control.threshold == 0 {
                return fail(name.span(), "the threshold is not a number");
            }
            if let Some(param) = control.params.iter().find(|param| param.kind.is_empty()) {
                return fail(param.id.span(), "a parameter of an unknown kind");
            }
        }
        tracker.control = Some(control);
        Ok(tracker)
    }

    /// Reads the record of the alert, which is `Detail`; returns `None` if there are no records.
    fn detail(&self) -> Result<Option<Tracker>> {
        let mut all = self.source.calls("record", |input| self.record(input))?;
        let alert = all.iter().position(|(name, _)| name == "Detail");
        match (alert, all.first()) {
            (Some(at), _) => Ok(Some(all.swap_remove(at).1)),
            (None, None) => Ok(None),
            (None, Some((name, _))) => {
                let error = syn::Error::new(name.span(), "no record has the name Detail");
                Err(self.source.refusal(&error))
            }
        }
    }

    /// Parses the contents of `record! { }`; returns the name of the struct, too. Comments are
    /// optional there.
    fn record(&self, input: ParseStream) -> syn::Result<(Ident, Tracker)> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Token![struct]>()?;
        let name = input.parse()?;
        let fields = rows::<Token![,], _>(&block(input)?, |input| self.field(input))?;
        Ok((name, self.parts(input, fields, &mut Control::default())?))
    }

    /// Parses the parts of a declaration; skips the parts that only the module needs.
    fn parts(
        &self,
        input: ParseStream,
        mut fields: Vec<Rc<Field>>,
        control: &mut Control,
    ) -> syn::Result<Tracker> {
        let (mut stored, mut printed, mut tail) = (None, None, None);
        let mut points = Vec::new();
        while !input.is_empty() {
            let part = input.call(Ident::parse_any)?;
            let name = part.to_string();
            if input.parse::<Option<Token![:]>>()?.is_some() {
                match name.as_str() {
                    "threshold" if input.peek(LitInt) => control.threshold = number(input)?,
                    "tasks" => control.tasks = Some(input.parse::<LitBool>()?.value()),
                    "stored" => stored = Some((part.span(), until_semicolon(input)?)),
                    "printed" => printed = Some((part.span(), until_semicolon(input)?)),
                    "tail" => tail = Some(input.parse::<Ident>()?.to_string()),
                    _ => drop(until_semicolon::<TokenTree>(input)?),
                }
                input.parse::<Token![;]>()?;
                continue;
            }
            if name == "impl" {
                input.parse::<Group>()?;
                continue;
            }
            let header = input.parse::<Option<Ident>>()?;
            let rows_of = &block(input)?;
            match (name.as_str(), header) {
                ("counters", None) => control.counters = rows::<Token![,], _>(rows_of, counter)?,
                ("params", None) => {
                    control.params = rows::<Token![;], _>(rows_of, |input| self.param(input))?;
                }
                ("alert", None) => {
                    fields = rows::<Token![,], _>(rows_of, |input| {
                        let span = input.span();
                        let field = self.field(input)?;
                        match field.doc.is_empty() && field.is_in_line() {
                            true => fail(span, "a field without a comment"),
                            false => Ok(field),
                        }
                    })?;
                }
                ("probes", Some(header)) => {
                    let header = header.to_string();
                    points.extend(rows::<Token![;], _>(rows_of, |input| {
                        point(input, &header)
                    })?);
                }
                _ => return fail(part.span(), "unknown part of a declaration"),
            }
        }
        let traced = fields.iter().filter(|field| field.is_in_trace_event());
        let traced: Vec<Rc<Field>> = traced.cloned().collect();
        Ok(Tracker {
            name: self.name.to_owned(),
            control: None,
            stored: ordered(stored, &traced)?,
            printed: ordered(printed, &traced)?,
            fields,
            tail,
            points,
        })
    }

    /// Parses `NAME: TYPE at WORD:BIT in WORDS as SHOWN if WHEN = CLOSURE`. `=> FUNCTION` may
    /// replace `= CLOSURE`; all parts but NAME are optional.
    fn field(&self, input: ParseStream) -> syn::Result<Rc<Field>> {
        let doc = comment(input)?;
        let name = input.parse::<Ident>()?.to_string();
        let (mut ty, mut word, mut bit, mut words) = (Rc::default(), 0, 0, Vec::new());
        if input.parse::<Option<Token![:]>>()?.is_some() {
            let id: Ident = input.parse()?;
            ty = match self.types.get(&id.to_string()) {
                Some(ty) => ty.clone(),
                None => return fail(id.span(), &format!("no fields! has the type {id}")),
            };
            let at: Ident = input.parse()?;
            if at != "at" {
                return fail(at.span(), "expected `at`");
            }
            word = number(input)?;
            if input.parse::<Option<Token![:]>>()?.is_some() {
                let span = input.span();
                bit = number(input)?;
                if bit >= 64 {
                    return fail(span, "expected a bit from 0 to 63");
                }
            }
            if let Some(constant) = after::<Token![in], Ident>(input)? {
                words = self.constant(&self.source, &constant)?;
            }
        }
        let shown = after::<Token![as], Ident>(input)?.map(|shown| shown.to_string());
        let mut when = String::new();
        if let Some(line) = after::<Token![if], Ident>(input)? {
            when = line.to_string();
            if !["alert", "end", "pending", "traced", "kept"].contains(&when.as_str()) {
                return fail(line.span(), "expected alert, end, pending, traced or kept");
            }
        }
        if after::<Token![=>], syn::Path>(input)?.is_none() {
            after::<Token![=], ExprClosure>(input)?;
        }
        Ok(Rc::new(Field {
            doc,
            shown: shown.unwrap_or(name.clone()),
            name,
            when,
            ty,
            word,
            bit,
            words,
        }))
    }

    /// Parses `NAME: ParamKind::KIND(WORDS) => DEFAULT, "HELP", fixed`.
    fn param(&self, input: ParseStream) -> syn::Result<Param> {
        let name = input.parse::<Ident>()?.to_string();
        input.parse::<Token![:]>()?;
        input.parse::<Ident>()?;
        input.parse::<Token![::]>()?;
        let id: Ident = input.parse()?;
        let known = KINDS.iter().find(|(known, ..)| id == known);
        let (_, kind, zero) = known.copied().unwrap_or(("", "", ""));
        let (mut kind, mut words) = (kind.to_owned(), Vec::new());
        if id == "Word" && input.peek(Paren) {
            let content;
            parenthesized!(content in input);
            words = self.words(&content)?;
            kind = words.join("|");
        } else if input.peek(Paren) || input.peek(Brace) {
            input.parse::<Group>()?;
        }
        input.parse::<Token![=>]>()?;
        let span = input.span();
        let default = match (input.peek(LitInt), words.as_slice()) {
            (true, []) => match number(input)? {
                0 => zero.to_owned(),
                number => u64::to_string(&number),
            },
            (true, words) => match words.get(number::<usize>(input)?) {
                Some(word) => word.clone(),
                None => return fail(span, "no word has this number"),
            },
            (false, words) => {
                // ALL, ALL_DEVICES
                let path: syn::Path = input.parse()?;
                let mut names = path.segments.iter().map(|name| name.ident.to_string());
                let is_all = words.is_empty() && names.any(|name| name.starts_with("ALL"));
                if !is_all && !kind.is_empty() {
                    return fail(span, "expected a number, or ALL");
                }
                "all".to_owned()
            }
        };
        input.parse::<Token![,]>()?;
        Ok(Param {
            name,
            id,
            kind,
            words,
            default,
            help: input.parse::<LitStr>()?.value(),
            is_fixed: after::<Token![,], Ident>(input)?.is_some(),
        })
    }

    /// Parses `&["...", ...]`, or a constant of this file, of a module of the tracker, or of `sys`.
    fn words(&self, input: ParseStream) -> syn::Result<Vec<String>> {
        let span = input.span();
        let expr: Expr = input.parse()?;
        if let Some(words) = strings(&expr) {
            return Ok(words);
        }
        let expr = match &expr {
            Expr::Reference(reference) => &reference.expr,
            other => other,
        };
        let Expr::Path(path) = expr else {
            return fail(span, "expected words, or a constant");
        };
        let mut names: Vec<&Ident> = path.path.segments.iter().map(|it| &it.ident).collect();
        let Some(constant) = names.pop() else {
            return fail(span, "expected a constant");
        };
        if names.is_empty() {
            return self.constant(&self.source, constant);
        }
        let module: String = names.iter().map(|name| format!("/{name}")).collect();
        let files = [
            format!("rust/trackers/{}{module}.rs", self.name),
            format!("rust/sys{module}.rs"),
        ];
        let Some(file) = files.iter().find(|file| Path::new(file).exists()) else {
            return fail(span, &format!("no file {}", files.join(" or ")));
        };
        match Source::read(file) {
            Ok(source) => self.constant(&source, constant),
            Err(error) => fail(span, &error.to_string()),
        }
    }

    fn constant(&self, source: &Source, name: &Ident) -> syn::Result<Vec<String>> {
        match source.constant(&name.to_string()) {
            Some(words) => Ok(words),
            None => fail(name.span(), &format!("no const {name}: [&str; N]")),
        }
    }
}

/// Returns the fields in the order of these names. The names must be the names of all fields.
fn ordered(names: Option<(Span, Vec<Ident>)>, fields: &[Rc<Field>]) -> syn::Result<Vec<Rc<Field>>> {
    let Some((span, names)) = names else {
        return Ok(fields.to_vec());
    };
    let named = |name: &Ident| fields.iter().find(|field| name == &field.name);
    let ordered: Vec<Rc<Field>> = names.iter().filter_map(named).cloned().collect();
    let has_all = fields
        .iter()
        .all(|field| names.iter().any(|name| name == &field.name));
    match has_all && names.len() == fields.len() {
        true => Ok(ordered),
        false => fail(span, "these are not the fields of the trace event"),
    }
}

fn counter(input: ParseStream) -> syn::Result<(String, String)> {
    let span = input.span();
    let doc = comment(input)?;
    match doc.is_empty() {
        true => fail(span, "a counter without a comment"),
        false => Ok((input.parse::<Ident>()?.to_string(), doc)),
    }
}

/// Parses `#[cfg(CONFIG)] NAME(ARGUMENT: [TYPE], ...) => CALL`.
fn point(input: ParseStream, header: &str) -> syn::Result<Point> {
    let attributes = input.call(Attribute::parse_outer)?;
    let config = match attributes.as_slice() {
        [] => None,
        [cfg] if cfg.path().is_ident("cfg") => Some(cfg.parse_args::<Ident>()?),
        _ => return fail(input.span(), "expected one #[cfg(CONFIG)] at most"),
    };
    let name = input.parse::<Ident>()?.to_string();
    let arguments;
    parenthesized!(arguments in input);
    let types = rows::<Token![,], _>(&arguments, |input| {
        input.parse::<Ident>()?;
        input.parse::<Token![:]>()?;
        Ok(input.parse::<Group>()?.stream().to_string())
    })?;
    input.parse::<Token![=>]>()?;
    input.parse::<Expr>()?;
    Ok(Point {
        header: header.to_owned(),
        name,
        config: config.map(|config| config.to_string()),
        types,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse::Parser;

    const TYPES: &str = r#"
        bool, 1, |it| it.into(), |bits| bits & 1 != 0, u32::from(it), "bool" "%d" "1 & ";
        u32, u32::BITS, |it| it.into(), |bits| bits as u32, it, "u32" "%u";
        Stack, 512;
    "#;

    fn types() -> Types {
        let mut types = Types::new();
        let read = |input: ParseStream| crate::types::rows(input, &mut types);
        read.parse_str(TYPES).unwrap();
        types
    }

    /// Reads a tracker with these fields.
    fn tracker(fields: &str) -> Result<Tracker> {
        let head = "const STATES: [&str; 2] = [\"R\", \"R+\"];\ntracker! {\nit: \"its help\";\n";
        let text = format!("{head}threshold: 1_000;\nalert {{\n{fields}\n}}\n}}\n");
        let reader = Reader {
            name: "it",
            source: Source::new("it.rs", text)?,
            types: &types(),
        };
        let mut all = reader
            .source
            .calls("tracker", |input| reader.tracker(input))?;
        Ok(all.pop().unwrap())
    }

    #[test]
    fn a_declaration_is_read() {
        let fields = "
            /// Where it ran, with more
            /// than one line.
            on : u32 at 0 : 32,
            /// The state.
            running: bool at 2:63 in STATES as state if end = |it, how| it.state(how, &[1, 2]),
            /// The stack.
            stack: Stack at 3 => show::stack,
            /// Only in the line.
            more if pending = |_, _| 0,";
        let it = tracker(fields).unwrap();
        assert_eq!(it.words(), 11);
        assert_eq!(it.control.unwrap().threshold, 1000);
        let [on, running, stack, more] = it.fields.as_slice() else {
            panic!("{} fields", it.fields.len());
        };
        assert_eq!(on.doc, "Where it ran, with more than one line.");
        assert_eq!((on.word, on.bit, on.ty.bits), (0, 32, 32));
        assert_eq!(
            (running.shown.as_str(), running.when.as_str()),
            ("state", "end")
        );
        assert_eq!(running.words, ["R", "R+"]);
        assert!(matches!(stack.ty.c, C::Absent));
        assert_eq!((more.ty.bits, more.when.as_str()), (0, "pending"));
        let names: Vec<&str> = it.stored.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["on", "running"]);
    }

    #[test]
    fn an_invalid_declaration_is_refused_with_its_line() {
        for (fields, refusal) in [
            (
                "/// It.\non: u33 at 0,",
                "it.rs:7: no fields! has the type u33: on: u33 at 0,",
            ),
            (
                "/// It.\non: u32 in 0,",
                "it.rs:7: expected identifier, found keyword `in`: on: u32 in 0,",
            ),
            (
                "/// It.\non: u32 on 0,",
                "it.rs:7: expected `at`: on: u32 on 0,",
            ),
            (
                "/// It.\non: u32 at 0:64,",
                "it.rs:7: expected a bit from 0 to 63: on: u32 at 0:64,",
            ),
            (
                "/// It.\non: u32 at 0:x,",
                "it.rs:7: expected integer literal: on: u32 at 0:x,",
            ),
            (
                "on: u32 at 0,",
                "it.rs:6: a field without a comment: on: u32 at 0,",
            ),
            (
                "/// It.\non: u32 at 0 in NO,",
                "it.rs:7: no const NO: [&str; N]: on: u32 at 0 in NO,",
            ),
            (
                "/// It.\non: u32 at 0 if end2,",
                "it.rs:7: expected alert, end, pending, traced or kept: on: u32 at 0 if end2,",
            ),
            (
                "/// It.\non: u32 at 0 1,",
                "it.rs:7: expected `,`: on: u32 at 0 1,",
            ),
            (
                "}\nparams {\nstate: ParamKind::Word(&super::x::STATES) => 0, \"it\";",
                "it.rs:8: no file rust/trackers/it/super/x.rs or rust/sys/super/x.rs: \
                 state: ParamKind::Word(&super::x::STATES) => 0, \"it\";",
            ),
            (
                "}\nprobes irq {\n#[allow(A)]\nat(irq: [int]) => f(irq);",
                "it.rs:9: expected one #[cfg(CONFIG)] at most: at(irq: [int]) => f(irq);",
            ),
            (
                "}\nprobes irq {\n#[cfg(A)] #[cfg(B)]\nat(irq: [int]) => f(irq);",
                "it.rs:9: expected one #[cfg(CONFIG)] at most: at(irq: [int]) => f(irq);",
            ),
        ] {
            let error = tracker(fields).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(refusal), "{fields}");
        }
    }

    #[test]
    fn the_words_of_a_parameter_may_be_a_constant_of_its_file() {
        let params = "}\nparams {\nstate: ParamKind::Word(&STATES) => 1, \"its state\";";
        let params = tracker(params).unwrap().control.unwrap().params;
        assert_eq!(
            (params[0].kind.as_str(), params[0].default.as_str()),
            ("R|R+", "R+")
        );
    }

    #[test]
    fn other_records_are_not_the_alert() {
        let record = |name: &str, field: &str| {
            format!("record! {{\nstruct {name} {{\n{field}: u32 at 0,\n}}\n}}\n")
        };
        let types = types();
        let reader = |text| Reader {
            name: "it",
            source: Source::new("it.rs", text).unwrap(),
            types: &types,
        };
        let text = record("Label", "to") + &record("Detail", "on");
        let it = reader(text).detail().unwrap().unwrap();
        assert_eq!(it.fields[0].name, "on");
        let refused = reader(record("Label", "to")).detail().err().unwrap();
        assert_eq!(
            refused.to_string(),
            "it.rs:2: no record has the name Detail: struct Label {"
        );
        assert!(reader(String::new()).detail().unwrap().is_none());
    }

    #[test]
    fn a_tracepoint_may_depend_on_the_configuration() {
        let probes = "}\nprobes irq {\n#[cfg(A)]\nat(irq: [int]) => f(irq);\non() => f();";
        let it = tracker(probes).unwrap();
        let configs: Vec<Option<&str>> = it.points.iter().map(|it| it.config.as_deref()).collect();
        assert_eq!(configs, [Some("A"), None]);
    }

    #[test]
    fn orders_have_all_fields_of_the_event() {
        let fields = "/// It.\non: u32 at 0,\n/// And.\nto: u32 at 1,\n}\nstored: to on;\nprinted";
        let it = tracker(&format!("{fields}: on to;\nimpl {{")).unwrap();
        assert_eq!(it.stored[0].name, "to");
        let error = tracker(&format!("{fields}: on on;\nimpl {{"))
            .err()
            .unwrap();
        let expected = "it.rs:12: these are not the fields of the trace event: printed: on on;";
        assert_eq!(error.to_string(), expected);
    }
}
