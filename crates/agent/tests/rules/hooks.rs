//! Hooks: what they see, what they may change, and what happens when they fail.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ostler_agent::hook::{Ask, Hook, Moment, ToolAsk, Verdict};
use ostler_kernel::{Block, Failure, StepKind};

use crate::{
    failure,
    ground::{Scene, calls, heard, says, turn},
    output, results,
};

/// Writes down when it is asked, and changes what passes by.
struct Marker {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Marker {
    fn see(&self, what: &str, at: Moment<'_>) {
        self.seen.lock().unwrap().push(format!("{} {what} {}", self.name, at.step));
    }
}

#[async_trait]
impl Hook for Marker {
    async fn before_model(&self, at: Moment<'_>, ask: &mut Ask) -> Result<(), Failure> {
        self.see("before model", at);
        ask.system.push_str(self.name);
        Ok(())
    }

    async fn after_model(&self, at: Moment<'_>, answer: &mut Vec<Block>) -> Result<(), Failure> {
        self.see("after model", at);
        for block in answer {
            if let Block::Text { text } = block {
                text.push_str(self.name);
            }
        }
        Ok(())
    }

    async fn before_tool(&self, at: Moment<'_>, call: &mut ToolAsk) -> Result<Verdict, Failure> {
        self.see("before tool", at);
        if call.name == "delete" {
            return Ok(Verdict::Refuse { reason: format!("{} keeps things", self.name) });
        }
        let comma = if call.arguments == "{}" { "" } else { "," };
        call.arguments = call.arguments.replace('}', &format!("{comma}\"{}\":1}}", self.name));
        Ok(Verdict::Proceed)
    }

    async fn after_tool(
        &self,
        at: Moment<'_>,
        _: &ToolAsk,
        result: &mut Result<String, Failure>,
    ) -> Result<(), Failure> {
        self.see("after tool", at);
        if let Ok(content) = result {
            content.push_str(self.name);
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_first_hook_stands_outermost_and_what_they_change_is_kept() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let scene = Scene::new(|request| {
        assert_eq!(request.system, "Be kind.AB");
        match turn(request) {
            0 => calls(&[("search", "{}"), ("delete", "{}")]),
            _ => {
                assert!(heard(request).contains("arguments: \"{}\""), "the model sees its own words");
                says("done ")
            }
        }
    });
    let marker = |name| Marker { name, seen: Arc::clone(&seen) };
    let tools = |request: &ostler_agent::tools::ToolRequest| Ok(format!("{} ", request.arguments));
    let scene = scene.tools(tools).hook(marker("A")).hook(Quiet).hook(marker("B"));
    let story = scene.play().await;
    assert_eq!(output(&story), "done BA");
    let given = results(&story);
    assert!(given.contains(&("error hook_refused: A keeps things", true)), "{given:?}");
    assert_eq!(story.called.len(), 1, "{:?}", story.called);
    let first: Vec<String> = seen.lock().unwrap().iter().take(7).cloned().collect();
    let expected = ["A before model 0", "B before model 0", "B after model 0", "A after model 0"];
    assert_eq!(first[..4], expected);
    assert_eq!(first[4..], ["A before tool 1", "B before tool 1", "A before tool 2"]);
    let StepKind::Tool { arguments, .. } = &story.steps[1].kind else { panic!() };
    assert_eq!(arguments, "{\"A\":1,\"B\":1}", "what is called is journaled before");
    assert!(given.contains(&("{\"A\":1,\"B\":1} BA", false)), "{given:?}");
}

/// Says nothing to anything.
struct Quiet;

impl Hook for Quiet {}

/// Fails where it is told to.
struct Broken(&'static str);

impl Broken {
    fn at(&self, place: &str) -> Result<(), Failure> {
        match self.0 == place {
            true => Err(Failure::permanent("plugin_broken", place.to_owned())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Hook for Broken {
    async fn before_model(&self, _: Moment<'_>, _: &mut Ask) -> Result<(), Failure> {
        self.at("before model")
    }

    async fn after_model(&self, _: Moment<'_>, _: &mut Vec<Block>) -> Result<(), Failure> {
        self.at("after model")
    }

    async fn before_tool(&self, _: Moment<'_>, _: &mut ToolAsk) -> Result<Verdict, Failure> {
        self.at("before tool").map(|()| Verdict::Proceed)
    }

    async fn after_tool(
        &self,
        _: Moment<'_>,
        call: &ToolAsk,
        _: &mut Result<String, Failure>,
    ) -> Result<(), Failure> {
        if call.name == "search" { self.at("after tool") } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_hook_that_fails_fails_the_run() {
    for (place, n_asked, n_called, n_kept) in [
        ("before model", 0, 0, 1),
        ("after model", 1, 0, 1),
        ("before tool", 1, 0, 1),
        ("after tool", 1, 2, 4),
    ] {
        let scene = Scene::new(|request| match turn(request) {
            0 => calls(&[("search", "{}"), ("publish", "{}")]),
            _ => panic!("the run went on"),
        });
        let story = scene.hook(Broken(place)).play().await;
        let failure = failure(&story);
        assert_eq!((failure.code.as_str(), failure.message.as_str()), ("plugin_broken", place));
        let seen = (story.asked.len(), story.called.len(), story.entries.len());
        assert_eq!(seen, (n_asked, n_called, n_kept), "{place}");
    }
}
