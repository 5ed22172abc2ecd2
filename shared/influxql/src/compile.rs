//! Compiles a `SELECT`: checks it against the existing fields and tags, and makes a query that can be evaluated. Reads
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use domain::{Timestamp, Zone};

use crate::ast::{Cast, Expression, Fill, Operator, RowWindow, Select, SelectColumn};
use crate::condition::{self, Range, nanoseconds};
use crate::duration::SECOND;
use crate::error::{QueryError, refuse};
use crate::function::{AggregateCall, FunctionCall, PointAggregate, Transform, unknown};
use crate::math::Math;
use crate::series::SelectNames;
use crate::value::Value;
use crate::windows::{InstantRange, TimeWindows};

/// The largest number of columns of an answer.
const MAX_COLUMNS: usize = 50;

/// The longest interval of `GROUP BY time`: 36500d.
const MAX_INTERVAL: i64 = 36_500 * 86_400 * SECOND;

/// A checked `SELECT`.
#[derive(Debug)]
pub(crate) struct CheckedSelect {
    /// The name of the time column.
    pub(crate) time: String,
    pub(crate) columns: Vec<OutColumn>,
    /// The calls from which columns are made; without calls, the answer has the points themselves.
    pub(crate) calls: Vec<FunctionCall>,
    /// The tags by which points are grouped, in order.
    pub(crate) dimensions: Vec<String>,
    pub(crate) interval: Option<TimeWindows>,
    pub(crate) range: Range,
    /// The condition on points, without its bounds on time.
    pub(crate) condition: Option<Expression>,
    /// The fields that are read for the query, each once.
    pub(crate) fields: Vec<String>,
    /// Whether the condition is about fields.
    pub(crate) has_field_condition: bool,
    pub(crate) fill: Fill,
    pub(crate) is_descending: bool,
    pub(crate) rows: RowWindow,
    pub(crate) series: RowWindow,
    pub(crate) zone: Option<Zone>,
}

/// The properties of the outer statement that a subquery inherits.
#[derive(Debug, Clone)]
pub(crate) struct OuterQuery {
    /// The range of the outer statement, to which the subquery's own range is cut.
    pub(crate) range: Range,
    /// The tags by which the outer statement groups. The subquery groups by these tags, too.
    pub(crate) dimensions: Vec<String>,
    /// The windows of the outer statement, which the subquery uses unless it has its own.
    pub(crate) interval: Option<TimeWindows>,
    pub(crate) is_descending: bool,
}

impl OuterQuery {
    /// The properties of a query that the subqueries in its `FROM` inherit.
    pub(crate) fn of(query: &CheckedSelect) -> Self {
        let CheckedSelect { range, dimensions, interval, is_descending, .. } = query;
        let (interval, dimensions) = (*interval, dimensions.clone());
        Self { range: *range, dimensions, interval, is_descending: *is_descending }
    }
}

/// A column of the answer.
#[derive(Debug)]
pub(crate) struct OutColumn {
    pub(crate) name: String,
    pub(crate) cell: ColumnContent,
}

/// The content of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnContent {
    Field(String),
    Tag(String),
    /// A call, by its index.
    Call(usize),
    Constant(Value),
    Computed(Operator, Box<[ColumnContent; 2]>),
    Math(Math, Vec<ColumnContent>),
    /// A name that is neither a field nor a tag; the column is empty.
    Nothing,
}

impl ColumnContent {
    /// Whether `is_wanted` accepts the content or a part of it.
    pub(crate) fn has(&self, is_wanted: &impl Fn(&Self) -> bool) -> bool {
        match self {
            Self::Computed(_, sides) => sides.iter().any(|side| side.has(is_wanted)),
            Self::Math(_, arguments) => arguments.iter().any(|argument| argument.has(is_wanted)),
            other => is_wanted(other),
        }
    }
}

impl CheckedSelect {
    /// Whether the query has a single call that selects a point. The answer then has the time and other values of this
    /// point.
    pub(crate) fn is_selector(&self) -> bool {
        matches!(&self.calls[..], [FunctionCall::PointAggregate(call)] if call.aggregate.is_selector())
    }

    /// Whether there are calls and each is `last`.
    pub(crate) fn is_of_last(&self) -> bool {
        let is_last = |call: &FunctionCall| call.aggregate() == Some(PointAggregate::Last);
        !self.calls.is_empty() && self.calls.iter().all(is_last)
    }

    /// Whether a column shows a tag or a field that is outside of calls.
    pub(crate) fn has_other_values(&self) -> bool {
        let is_other =
            |cell: &ColumnContent| matches!(cell, ColumnContent::Field(_) | ColumnContent::Tag(_));
        self.columns.iter().any(|column| column.cell.has(&is_other))
    }

    /// Widens a range by the earlier windows that calls need. In descending order these windows are after the range.
    pub(crate) fn widened(&self, range: InstantRange) -> InstantRange {
        let windows = self.calls.iter().map(FunctionCall::looks_back).max().unwrap_or(0);
        self.interval.map_or(range, |interval| interval.widened(range, windows, self.is_descending))
    }

    /// Whether a tag matters to the answer.
    pub(crate) fn uses_tag(&self, name: &str) -> bool {
        let by = self.calls.iter().filter_map(|call| match call {
            FunctionCall::PointAggregate(call) | FunctionCall::OfWindows(_, call) => Some(&call.by),
            FunctionCall::OfPoints(..) => None,
        });
        let is_tag =
            |cell: &ColumnContent| matches!(cell, ColumnContent::Tag(shown) if shown == name);
        let compared = self.condition.as_ref().map(condition::names).unwrap_or_default();
        self.dimensions.iter().chain(by.flatten()).any(|used| used == name)
            || self.columns.iter().any(|column| column.cell.has(&is_tag))
            || compared.iter().any(|(used, _)| *used == name)
    }
}

/// Compiles a `SELECT`. For a subquery, `outer` has the properties of the outer statement.
pub(crate) fn compile(
    select: &Select,
    schema: &SelectNames,
    outer: Option<&OuterQuery>,
    now: Timestamp,
) -> Result<CheckedSelect, QueryError> {
    let is_descending = match (select.is_descending, outer) {
        (Some(own), Some(outer)) if own != outer.is_descending => {
            refuse!("subqueries must be ordered in the same direction as the query itself")
        }
        (own, outer) => own.unwrap_or(outer.is_some_and(|outer| outer.is_descending)),
    };

    let (mut range, condition) = condition::split(select.condition.as_ref(), select.zone, now)?;
    let mut compiler = Compiler::new(schema, now);
    let mut dimensions = compiler.dimensions(select)?;
    if let Some(outer) = outer {
        range.narrow(outer.range.from, outer.range.to);
        dimensions.extend(outer.dimensions.iter().cloned());
        compiler.is_inherited = compiler.interval.is_none();
        compiler.interval = compiler.interval.or(outer.interval);
    }

    let has_own_windows = compiler.interval.is_some() && !compiler.is_inherited;

    let (time, columns) = compiler.columns(select, &dimensions)?;
    let has_field_condition = compiler.read_condition(condition.as_ref());
    let Compiler { calls, interval, count, fields, .. } = compiler;

    let interval = interval.filter(|_| !calls.is_empty());
    if interval.is_some() && range.to.is_none() {
        range.to = Some(nanoseconds(now));
    }

    let query = CheckedSelect {
        time,
        columns,
        calls,
        dimensions: dimensions.into_iter().collect(),
        interval,
        range,
        condition,
        fields,
        has_field_condition,
        // A subquery leaves out windows without values, so that the outer statement does not take them as points.
        fill: if outer.is_some() && select.fill == Fill::Null { Fill::None } else { select.fill },
        is_descending,
        rows: select.rows,
        series: select.series,
        zone: select.zone,
    };

    let has_calls = select.columns.iter().any(|column| has_call(&column.expression));
    if !has_calls && has_own_windows {
        refuse!("GROUP BY requires at least one aggregate function");
    }

    check(&query, count, has_calls)?;
    Ok(query)
}

/// Refuses calls and columns that cannot be combined. `count` is the number of calls: a call that makes several columns
/// counts for each of them. `has_calls` tells whether the statement has calls as it was written, even if a pattern
/// matches no field and the query has no call.
fn check(query: &CheckedSelect, count: usize, has_calls: bool) -> Result<(), QueryError> {
    let (mut is_of_many, mut is_distinct) = (None, false);
    for aggregate in query.calls.iter().filter_map(FunctionCall::aggregate) {
        is_distinct |= aggregate == PointAggregate::Distinct;
        match aggregate {
            PointAggregate::Top(_) => is_of_many = Some("top"),
            PointAggregate::Bottom(_) => is_of_many = Some("bottom"),
            _ => {}
        }
    }

    if is_distinct && (count > 1 || query.columns.len() > 1) {
        refuse!("aggregate function distinct() cannot be combined with other functions or fields");
    }
    if let Some(name) = is_of_many.filter(|_| count > 1) {
        refuse!("selector function {name}() cannot be combined with other functions");
    }

    let is_mixed =
        if query.calls.is_empty() { has_calls } else { count > 1 || !query.is_selector() };
    if is_mixed && query.has_other_values() {
        let is_selector = |call: &FunctionCall| matches!(call, FunctionCall::PointAggregate(call) if call.aggregate.is_selector());
        let message = if !query.calls.is_empty() && query.calls.iter().all(is_selector) {
            "mixing multiple selector functions with tags or fields is not supported"
        } else {
            "mixing aggregate and non-aggregate queries is not supported"
        };
        return Err(QueryError::new(message));
    }

    Ok(())
}

struct Compiler<'a> {
    schema: &'a SelectNames,
    calls: Vec<FunctionCall>,
    interval: Option<TimeWindows>,
    /// Whether the windows are inherited from the outer statement.
    is_inherited: bool,
    now: Timestamp,
    /// The number of calls. Equal calls are made once, but each counts.
    count: usize,
    fields: Vec<String>,
}

impl<'a> Compiler<'a> {
    const fn new(schema: &'a SelectNames, now: Timestamp) -> Self {
        Self {
            schema,
            calls: Vec::new(),
            interval: None,
            is_inherited: false,
            now,
            count: 0,
            fields: Vec::new(),
        }
    }

    /// Notes that a field is read.
    fn read(&mut self, field: &str) {
        if !self.fields.iter().any(|known| known == field) {
            self.fields.push(field.to_owned());
        }
    }

    /// Notes the fields of a condition. Returns whether the condition has fields.
    fn read_condition(&mut self, condition: Option<&Expression>) -> bool {
        let mut has_fields = false;
        for (name, cast) in condition.map(condition::names).unwrap_or_default() {
            if cast != Some(Cast::Tag) && self.schema.has_field(name) {
                self.read(name);
                has_fields = true;
            }
        }
        has_fields
    }

    fn dimensions(&mut self, select: &Select) -> Result<BTreeSet<String>, QueryError> {
        let mut tags = BTreeSet::new();
        let mut has_time = false;

        for dimension in &select.dimensions {
            match ungrouped(dimension) {
                time if time.is_time() => {
                    refuse!("time() is a function and expects at least one argument")
                }
                Expression::Reference { name, .. } => drop(tags.insert(name.clone())),
                Expression::Wildcard(_) => tags.extend(self.schema.tags.iter().cloned()),
                Expression::Pattern(pattern) => {
                    tags.extend(self.schema.tags.iter().filter(|tag| pattern.is_in(tag)).cloned());
                }
                Expression::Call { name, arguments } if name == "time" => {
                    if has_time {
                        refuse!("multiple time dimensions not allowed");
                    }
                    has_time = true;
                    self.interval = self.time(arguments, select.zone)?;
                }
                Expression::Call { .. } => refuse!("only time() calls allowed in dimensions"),
                _ => refuse!("only time and tag dimensions allowed"),
            }
        }

        Ok(tags)
    }

    /// The windows of `GROUP BY time(length, offset)`; `None` if the length is not positive.
    fn time(
        &self,
        arguments: &[Expression],
        zone: Option<Zone>,
    ) -> Result<Option<TimeWindows>, QueryError> {
        let (length, offset) = match arguments {
            [length] => (length, None),
            [length, offset] => (length, Some(offset)),
            _ => refuse!("time dimension expected 1 or 2 arguments"),
        };

        let Expression::Duration(length) = length else {
            refuse!("time dimension must have duration argument");
        };
        if *length <= 0 {
            return Ok(None);
        }

        if *length > MAX_INTERVAL {
            refuse!("time dimension must not be longer than 36500d");
        }

        let offset = match offset {
            None => 0,
            Some(Expression::Duration(offset)) => offset % length,
            Some(Expression::Call { name, .. }) if name == "now" => nanoseconds(self.now) % length,
            // The text is read as in the condition `time = 'text'`.
            Some(Expression::Text(text)) => {
                let time = Expression::Binary {
                    operator: Operator::Equal,
                    sides: Box::new([
                        Expression::Reference { name: "time".to_owned(), cast: None },
                        Expression::Text(text.clone()),
                    ]),
                };
                let (range, _) = condition::split(Some(&time), zone, self.now)?;
                range.from.unwrap_or(0) % length
            }
            Some(_) => refuse!("time dimension offset must be duration or now()"),
        };

        Ok(Some(TimeWindows { length: *length, offset, zone }))
    }

    /// The name of the time column, and the other columns.
    fn columns(
        &mut self,
        select: &Select,
        dimensions: &BTreeSet<String>,
    ) -> Result<(String, Vec<OutColumn>), QueryError> {
        let mut time = "time".to_owned();
        let mut chosen: Vec<ChosenColumn> = Vec::new();
        for column in &select.columns {
            if column.expression.is_time() {
                time = column.alias.clone().unwrap_or(time);
                continue;
            }
            for expanded in self.expanded(column, dimensions)? {
                let SelectColumn { expression, alias } = expanded;
                let cell = self.cell(&expression)?;
                let by = self.by(&expression);
                if !cell.has(&|part| !matches!(part, ColumnContent::Constant(_))) {
                    refuse!("field must contain at least one variable");
                }
                chosen.push(ChosenColumn { alias, default_name: name_of(&expression), cell });
                for name in by {
                    let cell = self.reference(&name, None);
                    chosen.push(ChosenColumn { alias: None, default_name: name, cell });
                }
            }

            if chosen.len() > MAX_COLUMNS {
                refuse!("the answer has more than {MAX_COLUMNS} columns");
            }
        }

        if chosen.is_empty() && select.columns.iter().all(|column| column.expression.is_time()) {
            refuse!("at least 1 non-time field must be queried");
        }

        Ok((time, with_names(chosen)))
    }

    /// The columns for which a wildcard or a pattern stands.
    fn expanded(
        &self,
        column: &SelectColumn,
        dimensions: &BTreeSet<String>,
    ) -> Result<Vec<SelectColumn>, QueryError> {
        let reference = |name: &String, cast| SelectColumn {
            expression: Expression::Reference { name: name.clone(), cast: Some(cast) },
            alias: None,
        };

        let all = |is_wanted: &dyn Fn(&str) -> bool, cast: Option<Cast>| {
            let fields = self.schema.fields.iter().filter(|_| cast != Some(Cast::Tag));
            let tags = self
                .schema
                .tags
                .iter()
                .filter(|tag| cast != Some(Cast::Field) && !dimensions.contains(*tag));
            let mut found: Vec<(String, SelectColumn)> = fields
                .map(|name| (name.clone(), reference(name, Cast::Field)))
                .chain(tags.map(|name| (name.clone(), reference(name, Cast::Tag))))
                .filter(|(name, _)| is_wanted(name))
                .collect();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            found.into_iter().map(|(_, column)| column).collect()
        };

        match &column.expression {
            Expression::Wildcard(cast) => Ok(all(&|_| true, *cast)),
            Expression::Pattern(pattern) => Ok(all(&|name| pattern.is_in(name), None)),
            Expression::Call { name, arguments } => {
                let Some(fields) = self.fields_of(name, arguments) else {
                    return Ok(vec![column.clone()]);
                };
                let made = fields.into_iter().map(|field| {
                    let mut arguments = arguments.clone();
                    replace_field(&mut arguments, field);
                    let alias = column.alias.as_deref().unwrap_or(name);
                    let alias = Some(format!("{alias}_{field}"));
                    SelectColumn {
                        expression: Expression::Call { name: name.clone(), arguments },
                        alias,
                    }
                });
                Ok(made.collect())
            }
            other if other.has(&Expression::is_wildcard) => {
                refuse!("unsupported expression with wildcard")
            }
            _ => Ok(vec![column.clone()]),
        }
    }

    /// The fields for which a wildcard or a pattern stands as the argument of a call.
    fn fields_of(&self, name: &str, arguments: &[Expression]) -> Option<Vec<&'a String>> {
        match arguments.first()? {
            _ if ["distinct", "top", "bottom"].contains(&name) => None,
            Expression::Wildcard(_) => Some(self.schema.fields.iter().collect()),
            Expression::Pattern(pattern) => {
                Some(self.schema.fields.iter().filter(|field| pattern.is_in(field)).collect())
            }
            Expression::Call { name, arguments } => self.fields_of(name, arguments),
            _ => None,
        }
    }

    /// The tags and fields after the first argument of `top` or `bottom`. These tags and fields become columns, too.
    fn by(&mut self, of: &Expression) -> Vec<String> {
        match of {
            Expression::Call { name, .. } if ["top", "bottom"].contains(&name.as_str()) => {
                let Some(FunctionCall::PointAggregate(call)) = self.calls.last() else {
                    return Vec::new();
                };
                call.by.clone()
            }
            _ => Vec::new(),
        }
    }

    fn cell(&mut self, of: &Expression) -> Result<ColumnContent, QueryError> {
        match of {
            Expression::Reference { name, cast } => Ok(self.reference(name, *cast)),
            Expression::Number(number) => Ok(ColumnContent::Constant(Value::Float(*number))),
            Expression::Integer(number) => Ok(ColumnContent::Constant(Value::Integer(*number))),
            Expression::Group(inside) => self.cell(inside),
            Expression::Call { name, arguments } if let Some(math) = Math::of(name) => {
                check_count(name, arguments, math.arguments()..=math.arguments())?;
                let arguments: Result<_, _> =
                    arguments.iter().map(|argument| self.cell(argument)).collect();
                Ok(ColumnContent::Math(math, arguments?))
            }
            Expression::Call { name, arguments } => {
                let call = self.call(name, arguments)?;
                self.read(call.field());
                if let FunctionCall::PointAggregate(call) = &call {
                    let fields = call.by.iter().filter(|name| self.schema.has_field(name));
                    fields.for_each(|field| self.read(field));
                }

                self.count += 1;
                let known = self.calls.iter().position(|known| *known == call);
                let index = known.unwrap_or_else(|| {
                    self.calls.push(call);
                    self.calls.len() - 1
                });
                Ok(ColumnContent::Call(index))
            }
            Expression::Binary { operator, sides } if operator.is_arithmetic() => {
                let sides = [self.cell(&sides[0])?, self.cell(&sides[1])?];
                Ok(ColumnContent::Computed(*operator, Box::new(sides)))
            }
            other => refuse!("invalid expression in a column: {}", other.kind()),
        }
    }

    fn reference(&mut self, name: &str, cast: Option<Cast>) -> ColumnContent {
        match cast {
            Some(Cast::Other) => ColumnContent::Nothing,
            Some(Cast::Tag) => ColumnContent::Tag(name.to_owned()),
            _ if self.schema.has_field(name) => {
                self.read(name);
                ColumnContent::Field(name.to_owned())
            }
            None if self.schema.tags.contains(name) => ColumnContent::Tag(name.to_owned()),
            _ => ColumnContent::Nothing,
        }
    }

    fn call(&self, name: &str, arguments: &[Expression]) -> Result<FunctionCall, QueryError> {
        if let Some(counts) = Transform::arguments(name) {
            check_count(name, arguments, counts)?;
            let transform = Transform::of(name, arguments, self.interval)?;
            return match (&arguments[0], self.interval) {
                (Expression::Call { name: inner, arguments }, Some(_)) => {
                    match self.call(inner, arguments)? {
                        FunctionCall::PointAggregate(call) => {
                            Ok(FunctionCall::OfWindows(vec![transform], call))
                        }
                        FunctionCall::OfWindows(mut transforms, call) => {
                            transforms.push(transform);
                            Ok(FunctionCall::OfWindows(transforms, call))
                        }
                        FunctionCall::OfPoints(..) => {
                            let what = format_args!("{inner}() of a field in {name}()");
                            Err(QueryError::unsupported(what))
                        }
                    }
                }
                (Expression::Call { .. }, None) => {
                    refuse!("{name} aggregate requires a GROUP BY interval")
                }
                (_, Some(_)) if !self.is_inherited => {
                    refuse!("aggregate function required inside the call to {name}")
                }
                (field, _) => Ok(FunctionCall::OfPoints(transform, field_of(name, field)?)),
            };
        }

        Self::aggregate(name, arguments).map(FunctionCall::PointAggregate)
    }

    fn aggregate(name: &str, arguments: &[Expression]) -> Result<AggregateCall, QueryError> {
        let Some(counts) = PointAggregate::arguments(name) else {
            return Err(unknown(name));
        };
        check_count(name, arguments, counts)?;

        if let ("count", Expression::Call { name: inner, arguments }) = (name, &arguments[0])
            && inner == "distinct"
        {
            let call = Self::aggregate(inner, arguments)?;
            return Ok(AggregateCall { aggregate: PointAggregate::CountDistinct, ..call });
        }

        let aggregate = PointAggregate::of(name, arguments)?;
        if !aggregate.is_of_many() {
            let field = field_of(name, &arguments[0])?;
            return Ok(AggregateCall { aggregate, field, by: Vec::new() });
        }

        let field = field_of(name, &arguments[0]).map_err(|_| {
            let found = if matches!(arguments[0], Expression::Wildcard(_)) {
                "*"
            } else {
                arguments[0].kind()
            };
            QueryError::new(format!(
                "expected first argument to be a field in {name}(), found {found}"
            ))
        })?;

        let by = arguments[1..arguments.len() - 1].iter().map(|argument| match argument {
            Expression::Reference { name, .. } => Ok(name.clone()),
            other => refuse!("only fields or tags are allowed in {name}(), found {}", other.kind()),
        });
        Ok(AggregateCall { aggregate, field, by: by.collect::<Result<_, _>>()? })
    }
}

fn check_count(
    name: &str,
    arguments: &[Expression],
    counts: RangeInclusive<usize>,
) -> Result<(), QueryError> {
    let found = arguments.len();
    if counts.contains(&found) {
        return Ok(());
    }

    let (least, most) = counts.into_inner();
    let expected = if least == most {
        format!("{least}")
    } else if most == usize::MAX {
        format!("at least {least}")
    } else {
        format!("at least {least} but no more than {most}")
    };
    refuse!("invalid number of arguments for {name}, expected {expected}, got {found}")
}

fn field_of(name: &str, argument: &Expression) -> Result<String, QueryError> {
    match argument {
        Expression::Reference { name, .. } => Ok(name.clone()),
        Expression::Group(inside) => field_of(name, inside),
        _ => refuse!("expected field argument in {name}()"),
    }
}

/// An expression without the parentheses around it.
fn ungrouped(of: &Expression) -> &Expression {
    match of {
        Expression::Group(inside) => ungrouped(inside),
        other => other,
    }
}

/// Whether an expression calls an aggregate or a transformation. Mathematical functions do not count.
fn has_call(of: &Expression) -> bool {
    of.has(&|part| matches!(part, Expression::Call { name, .. } if Math::of(name).is_none()))
}

fn replace_field(arguments: &mut [Expression], field: &str) {
    match arguments.first_mut() {
        Some(Expression::Call { arguments, .. }) => replace_field(arguments, field),
        Some(first) => {
            *first = Expression::Reference { name: field.to_owned(), cast: Some(Cast::Field) };
        }
        None => {}
    }
}

/// The default name of a column without an alias: the names in its expression, joined.
fn name_of(of: &Expression) -> String {
    match of {
        Expression::Reference { name, .. } | Expression::Call { name, .. } => name.clone(),
        Expression::Group(inside) => name_of(inside),
        Expression::Binary { sides, .. } => {
            let names: Vec<String> =
                sides.iter().map(name_of).filter(|name| !name.is_empty()).collect();
            names.join("_")
        }
        _ => String::new(),
    }
}

/// A column that is not named yet.
struct ChosenColumn {
    alias: Option<String>,
    default_name: String,
    cell: ColumnContent,
}

/// Names the columns. Aliases stay as they are; a default name that is taken gets a number.
fn with_names(columns: Vec<ChosenColumn>) -> Vec<OutColumn> {
    let aliases = columns.iter().filter_map(|column| column.alias.clone());
    let mut taken: BTreeMap<String, usize> = aliases.map(|alias| (alias, 1)).collect();

    let mut named = Vec::with_capacity(columns.len());
    for ChosenColumn { alias, default_name, cell } in columns {
        let name = alias.unwrap_or_else(|| free_name(default_name, &mut taken));
        named.push(OutColumn { name, cell });
    }
    named
}

/// Takes a name that no other column has. `taken` counts the columns that wanted each name.
fn free_name(name: String, taken: &mut BTreeMap<String, usize>) -> String {
    let mut free = name.clone();
    if let Some(count) = taken.get(&name).copied() {
        let is_free = |n: &usize| !taken.contains_key(&format!("{name}_{n}"));
        let number = (count..=count + taken.len()).find(is_free);
        let number = number.expect("there are more numbers than columns");
        free = format!("{name}_{number}");
        taken.insert(name, number + 1);
    }
    *taken.entry(free.clone()).or_insert(0) += 1;
    free
}
