//! The steps of one agent, the last of them open: what its answer says more, and what its calls give, is still to come.

use std::fs::File;

use infradev_model::Tokens;
use infradev_model::atif::{
    FinalMetrics, Metrics, Observation, ObservationResult, Step, StepSource, ToolCall, TrajectoryAgent,
};
use serde_json::{Map, Value};

use super::document::{Document, Tail};

/// Bytes of texts that an open step may hold; what comes after is a step of its own.
const OPEN: usize = 16 << 20;

/// The steps of one agent.
pub(crate) struct Chain {
    document: Document,
    open: Option<Open>,
    sum: Option<Tokens>,
}

/// An answer of the model as far as it was told.
#[derive(Debug, Default)]
pub(crate) struct Open {
    step: Step,
    id: Option<String>,
    tokens: Option<Tokens>,
    bytes: usize,
}

impl Chain {
    pub(crate) fn begin(file: std::io::Result<File>, agent: &TrajectoryAgent, name: Option<&str>) -> Chain {
        Chain { document: Document::begin(file, agent, name), open: None, sum: None }
    }

    /// Steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.document.steps()
    }

    /// Tokens of all steps that told of them.
    pub(crate) fn sum(&self) -> Option<Tokens> {
        self.sum
    }

    /// The answer that is open, if one is.
    pub(crate) fn open(&mut self) -> Option<&mut Open> {
        self.open.as_mut()
    }

    /// The open answer of this id; begun where there is none, or one of another id.
    pub(crate) fn answer(&mut self, id: Option<&str>) -> &mut Open {
        let same = self.open.as_ref().is_some_and(|open| open.id.as_deref() == id && open.bytes < OPEN);
        if !same {
            self.close();
        }
        self.open.get_or_insert_with(|| Open { id: id.map(str::to_owned), ..Open::default() })
    }

    /// A step that is no answer of the model.
    pub(crate) fn aside(&mut self, source: StepSource, message: String, time: Option<String>) {
        self.step(Step { source, message, timestamp: time, ..Step::default() });
    }

    /// A whole step.
    pub(crate) fn step(&mut self, step: Step) {
        self.close();
        self.document.step(step);
    }

    /// What a call gave: part of the open answer where that made the call, else a step of its own.
    pub(crate) fn result(&mut self, call: &str, mut result: ObservationResult) {
        match self.open.as_mut().filter(|open| open.calls(call)) {
            Some(open) => {
                open.bytes += result.content.as_ref().map_or(0, String::len);
                result.source_call_id = Some(call.to_owned());
                open.step.observation.get_or_insert_default().results.push(result);
            }
            None => {
                // ATIF wants each result in the step that made the call, and that is written.
                result.extra.get_or_insert_default().insert("tool_call_id".into(), call.into());
                let observation = Some(Observation { results: vec![result] });
                self.step(Step { source: StepSource::System, observation, ..Step::default() });
            }
        }
    }

    /// Writes the open answer.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Open { mut step, tokens, .. } = open;
        if step.llm_call_count == Some(0) && (tokens.is_some() || step.reasoning_content.is_some()) {
            // A model was called, whatever else is told: how often is not known.
            step.llm_call_count = None;
        }
        if let Some(tokens) = tokens {
            *self.sum.get_or_insert_default() += tokens;
            step.metrics = Some(metrics(tokens));
        }
        let says = !step.message.is_empty() || step.reasoning_content.is_some() || step.tool_calls.is_some();
        if says || step.metrics.is_some() {
            self.document.step(step);
        }
    }

    /// Ends the document.
    pub(crate) fn finish(mut self, tail: &Tail, subagents: Vec<File>) -> std::io::Result<File> {
        self.close();
        self.document.finish(tail, subagents)
    }
}

impl Open {
    /// Whether it made this call.
    fn calls(&self, id: &str) -> bool {
        self.step.tool_calls.iter().flatten().any(|call| call.tool_call_id == id)
    }

    /// Whether it called anything.
    pub(crate) fn has_calls(&self) -> bool {
        self.step.tool_calls.is_some()
    }

    /// Whether a call of it came back.
    pub(crate) fn has_results(&self) -> bool {
        self.step.observation.is_some()
    }

    /// Whether it said something.
    pub(crate) fn has_message(&self) -> bool {
        !self.step.message.is_empty()
    }

    /// Whether it told what it used.
    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// More of what it says, on a line of its own where `apart` and something stands there.
    pub(crate) fn say(&mut self, text: &str, apart: bool) {
        self.bytes += text.len();
        append(&mut self.step.message, text, apart);
    }

    /// More of its reasoning.
    pub(crate) fn reason(&mut self, text: &str) {
        self.bytes += text.len();
        if !text.is_empty() {
            append(self.step.reasoning_content.get_or_insert_default(), text, true);
        }
    }

    /// A call that it makes.
    pub(crate) fn call(&mut self, id: String, name: String, arguments: Value) {
        self.bytes += 64 + bytes(&arguments);
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            other => Map::from_iter([("input".to_owned(), other)]),
        };
        let call = ToolCall { tool_call_id: id, function_name: name, arguments, extra: None };
        self.step.tool_calls.get_or_insert_default().push(call);
    }

    /// What it used, in all: the last word counts.
    pub(crate) fn used(&mut self, tokens: Tokens) {
        self.tokens = Some(tokens);
    }

    /// When it was; the first word counts.
    pub(crate) fn at(&mut self, time: Option<String>) {
        self.step.timestamp = self.step.timestamp.take().or(time);
    }

    /// Which model answered, where that is not the trajectory's.
    pub(crate) fn by(&mut self, model: &str) {
        self.step.model_name = Some(model.to_owned());
    }

    /// How many answers of a model it is.
    pub(crate) fn answers(&mut self, count: u64) {
        self.step.llm_call_count = Some(count);
    }

    /// What else was told of it.
    pub(crate) fn extra(&mut self, name: &str, value: Value) {
        self.step.extra.get_or_insert_default().insert(name.to_owned(), value);
    }
}

fn append(text: &mut String, more: &str, apart: bool) {
    if apart && !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Bytes of all texts in a value.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + bytes(value)).sum(),
        _ => 8,
    }
}

fn metrics(tokens: Tokens) -> Metrics {
    Metrics {
        prompt_tokens: Some(tokens.input),
        completion_tokens: Some(tokens.output),
        cached_tokens: Some(tokens.cached),
        extra: more(tokens),
    }
}

/// Sums as the end of a trajectory has them.
pub(crate) fn totals(tokens: Option<Tokens>, steps: u64) -> FinalMetrics {
    FinalMetrics {
        total_prompt_tokens: tokens.map(|tokens| tokens.input),
        total_completion_tokens: tokens.map(|tokens| tokens.output),
        total_cached_tokens: tokens.map(|tokens| tokens.cached),
        total_steps: Some(steps),
        extra: tokens.and_then(more),
    }
}

/// Kinds of tokens for which ATIF has no field.
fn more(tokens: Tokens) -> Option<Map<String, Value>> {
    let kinds = [("reasoning_tokens", tokens.reasoning), ("cache_write_tokens", tokens.written)];
    let told = kinds.into_iter().filter(|(_, count)| *count > 0);
    Some(told.map(|(name, count)| (name.to_owned(), count.into())).collect())
        .filter(|map: &Map<_, _>| !map.is_empty())
}
