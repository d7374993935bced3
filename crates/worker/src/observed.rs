//! The gateway and the toolbox as production sees them: each call carries its trace, is timed, and is noted for its span.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::Stream;
use ostler_agent::{
    llm::{
        Completion, Finish, Gateway, Identity, ModelRequest, Part, Parts,
        net::{Held, Outgoing},
        secrets::Redactor,
    },
    tools::{ToolRequest, Toolbox},
};
use ostler_kernel::{Failure, Runtime, StepId, plan::ModelPlan};
use ostler_telemetry::{Histogram, ModelCall, Moment, Value, chunk_times, genai};

use crate::{
    content::Content,
    run_trace::{Note, RunTrace},
};

pub(crate) struct Observed<T> {
    inner: T,
    runtime: Arc<dyn Runtime>,
    redactor: Redactor,
}

impl<T> Observed<T> {
    pub fn new(inner: T, runtime: Arc<dyn Runtime>, redactor: Redactor) -> Self {
        Self { inner, runtime, redactor }
    }
}

impl<G: Gateway> Gateway for Observed<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        let Some((trace, step)) = RunTrace::current(&request.request_id) else {
            return self.inner.stream(request);
        };
        let content = Content::wanted(trace.telemetry(), &self.redactor);
        let watch = Watch {
            outgoing: Outgoing::new(trace.carried(step)),
            said: content.as_ref().map(|content| content.of_request(&request)).unwrap_or_default(),
            content,
            endpoint: request.endpoint.clone(),
            wants_json: request.output_schema.is_some(),
            began: Moment::from(self.runtime.now()),
            since: self.runtime.monotonic(),
            first_chunk: None,
            last_chunk: None,
            chunks: chunk_times(),
            redactor: self.redactor.clone(),
            runtime: Arc::clone(&self.runtime),
            trace,
            step,
        };
        let parts = watch.outgoing.sync_scope(|| self.inner.stream(request));
        Box::pin(Watched { parts, watch: Some(watch) })
    }
}

/// A model call under way.
struct Watch {
    trace: Arc<RunTrace>,
    step: StepId,
    outgoing: Arc<Outgoing>,
    runtime: Arc<dyn Runtime>,
    endpoint: ModelPlan,
    wants_json: bool,
    redactor: Redactor,
    content: Option<Content>,
    said: Vec<(&'static str, Value)>,
    began: Moment,
    since: Duration,
    first_chunk: Option<Duration>,
    /// When the last piece of the answer came.
    last_chunk: Option<Duration>,
    chunks: Histogram,
}

struct Watched {
    parts: Parts,
    /// Gone once the call is over.
    watch: Option<Watch>,
}

impl Stream for Watched {
    type Item = Result<Part, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(watch) = &mut this.watch else { return this.parts.as_mut().poll_next(cx) };
        let part = watch.outgoing.sync_scope(|| this.parts.as_mut().poll_next(cx));
        match &part {
            Poll::Ready(Some(Ok(Part::Text(_) | Part::Thinking(_)))) => {
                watch.came();
                watch.piece();
            }
            Poll::Ready(Some(Ok(Part::Done(completion)))) => {
                watch.came();
                this.watch.take().into_iter().for_each(|watch| watch.over(Ok(completion)));
            }
            Poll::Ready(Some(Err(failure))) => {
                this.watch.take().into_iter().for_each(|watch| watch.over(Err(failure)));
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        part
    }
}

/// Who drops a call cuts it off. What is known of it is kept for its step, which is told if it is journaled.
impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            watch.note(None, watch.took());
        }
    }
}

impl Watch {
    fn came(&mut self) {
        if self.first_chunk.is_none() {
            self.first_chunk = Some(self.took());
        }
    }

    /// One of the pieces that an answer comes in.
    fn piece(&mut self) {
        let now = self.took();
        if let Some(last) = self.last_chunk.replace(now) {
            self.chunks.add(now.saturating_sub(last).as_secs_f64());
        }
    }

    fn took(&self) -> Duration {
        self.runtime.monotonic().saturating_sub(self.since)
    }

    fn over(mut self, answer: Result<&Completion, &Failure>) {
        let took = self.took();
        let waited = self.outgoing.waited();
        let (turn, secret) = (self.outgoing.held(Held::Turn), self.outgoing.held(Held::Secret));
        let elsewhere = waited + turn.unwrap_or_default() + secret.unwrap_or_default();
        let call = ModelCall {
            provider: genai::provider(&self.endpoint.provider),
            model: &self.endpoint.model,
            took,
            first_chunk: self.first_chunk,
            chunks: (self.chunks.count() > 0).then_some(&self.chunks),
            // Whoever is in this process is not waited for.
            own_time: (waited > Duration::ZERO).then(|| took.saturating_sub(elsewhere)),
            turn: turn.filter(|_| self.endpoint.limits.has_turns()),
            secret,
            usage: match answer {
                Ok(completion) => completion.usage,
                Err(failure) => failure.spent.as_deref().copied(),
            },
            error: answer.err().map(|failure| failure.code.as_str()),
        };
        self.trace.telemetry().instruments().model_called(&call);
        self.note(answer.ok(), took);
    }

    fn note(&mut self, answer: Option<&Completion>, took: Duration) {
        if self.trace.is_kept() {
            let mut attributes = self.about(answer);
            attributes.append(&mut self.said);
            self.trace.note(self.step, Note { began: self.began, took, attributes, tries: 1 });
        }
    }

    fn about(&self, answer: Option<&Completion>) -> Vec<(&'static str, Value)> {
        let endpoint = &self.endpoint;
        let mut about: Vec<(&'static str, Value)> = vec![
            (genai::PROVIDER, genai::provider(&endpoint.provider).into()),
            (genai::ENDPOINT, endpoint.endpoint.as_str().into()),
            (genai::REQUEST_STREAM, true.into()),
        ];
        about.extend(server(&endpoint.base_url));
        about.extend(OPTIONS.iter().filter_map(|(option, name, read)| {
            Some((*name, read(endpoint.options.get(*option)?.as_str())?))
        }));
        about.extend(self.first_chunk.map(|first| (genai::TIME_TO_FIRST_CHUNK, first.as_secs_f64().into())));
        let output = if self.wants_json { "json" } else { "text" };
        about.push((genai::OUTPUT_TYPE, output.into()));
        if let Some(completion) = answer {
            let finish = finish_reason(completion.finish);
            about.push((genai::FINISH_REASONS, vec![finish.to_owned()].into()));
            let Identity { id, model } = &completion.identity;
            for (name, value) in [(genai::RESPONSE_ID, id), (genai::RESPONSE_MODEL, model)] {
                about.extend(
                    value.as_deref().map(|value| (name, self.redactor.hidden(value).as_ref().into())),
                );
            }
            about.extend(self.content.iter().map(|content| content.of_answer(completion, finish)));
        }
        about
    }
}

/// As the conventions spell them.
pub(crate) fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Pause => "stop",
        Finish::ToolCalls => "tool_call",
        Finish::Length => "length",
        Finish::ContentFilter | Finish::Refusal => "content_filter",
    }
}

/// Our name of an option, that of the conventions, and how to read it.
type Named = (&'static str, &'static str, fn(&str) -> Option<Value>);

/// Options of an endpoint that the conventions have a name for.
const OPTIONS: [Named; 11] = [
    ("temperature", "gen_ai.request.temperature", number),
    ("top_p", "gen_ai.request.top_p", number),
    ("top_k", "gen_ai.request.top_k", number),
    ("frequency_penalty", "gen_ai.request.frequency_penalty", number),
    ("presence_penalty", "gen_ai.request.presence_penalty", number),
    ("max_tokens", "gen_ai.request.max_tokens", integer),
    ("max_completion_tokens", "gen_ai.request.max_tokens", integer),
    ("max_output_tokens", "gen_ai.request.max_tokens", integer),
    ("num_predict", "gen_ai.request.max_tokens", integer),
    ("stop", genai::STOP_SEQUENCES, texts),
    ("seed", "gen_ai.request.seed", integer),
];

fn number(text: &str) -> Option<Value> {
    text.parse().ok().map(Value::Number)
}

fn integer(text: &str) -> Option<Value> {
    text.parse().ok().map(Value::Integer)
}

/// One text, or a JSON list of them.
fn texts(text: &str) -> Option<Value> {
    match text.starts_with('[') {
        true => serde_json::from_str::<Vec<String>>(text).ok().map(Value::from),
        false => Some(vec![text.to_owned()].into()),
    }
}

/// Who is called, from an address.
fn server(url: &str) -> Vec<(&'static str, Value)> {
    let Some((scheme, rest)) = url.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port.parse().ok()),
        _ => (authority, None),
    };
    let usual = if scheme == "https" { 443 } else { 80 };
    vec![
        (genai::SERVER_ADDRESS, host.trim_matches(['[', ']']).into()),
        (genai::SERVER_PORT, Value::Integer(port.unwrap_or(usual))),
    ]
}

#[async_trait]
impl<T: Toolbox> Toolbox for Observed<T> {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        let Some((trace, step)) = RunTrace::current(&request.request_id) else {
            return self.inner.call(request).await;
        };
        let (began, since) = (Moment::from(self.runtime.now()), self.runtime.monotonic());
        let content = Content::wanted(trace.telemetry(), &self.redactor);
        let mut attributes = if trace.is_kept() { about_tool(&request) } else { Vec::new() };
        attributes.extend(content.iter().map(|content| content.of_arguments(&request.arguments)));
        let tool = request.tool.name.clone();
        let outgoing = Outgoing::new(trace.carried(step));
        let result = outgoing.scope(self.inner.call(request)).await;
        let took = self.runtime.monotonic().saturating_sub(since);
        let error = result.as_ref().err().map(|failure| failure.code.as_str());
        trace.telemetry().instruments().tool_called(&tool, took, error);
        if trace.is_kept() {
            if let (Some(content), Ok(result)) = (&content, &result) {
                attributes.push(content.of_result(result));
            }
            trace.note(step, Note { began, took, attributes, tries: 1 });
        }
        result
    }
}

fn about_tool(request: &ToolRequest) -> Vec<(&'static str, Value)> {
    let tool = &request.tool;
    // Everything we call for a model is a function to it, wherever it is.
    let mut about: Vec<(&'static str, Value)> = vec![(genai::TOOL_TYPE, "function".into())];
    if !tool.description.is_empty() {
        about.push((genai::TOOL_DESCRIPTION, tool.description.as_str().into()));
    }
    about.extend(server(&tool.endpoint));
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_who_is_called() {
        let shown = |url: &str| server(url).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(shown("https://api.example/v1"), ["api.example".into(), Value::Integer(443)]);
        assert_eq!(shown("http://[::1]:8890/tool?a=1:2"), ["::1".into(), Value::Integer(8890)]);
        assert_eq!(shown(""), []);
    }
}
