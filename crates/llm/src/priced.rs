//! A gateway that adds to what a call used what that cost: by the price of its endpoint, or else by the table.

use futures_util::StreamExt;
use ostler_kernel::{Price, plan::ModelPlan};

use crate::{Gateway, ModelRequest, Part, Parts, Prices};

pub struct Priced<G> {
    inner: G,
    prices: Prices,
}

impl<G> Priced<G> {
    pub fn new(inner: G, prices: Prices) -> Self {
        Self { inner, prices }
    }
}

impl<G: Gateway> Gateway for Priced<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        let Some(price) = self.price(&request.endpoint) else {
            return self.inner.stream(request);
        };
        let priced = self.inner.stream(request).map(move |mut part| {
            let usage = match &mut part {
                Ok(Part::Done(completion)) => completion.usage.as_mut(),
                Ok(Part::Text(_) | Part::Thinking(_)) => None,
                Err(failure) => failure.spent.as_deref_mut(),
            };
            if let Some(usage) = usage {
                usage.cost_micro_usd = Some(price.of(usage));
            }
            part
        });
        Box::pin(priced)
    }

    fn price(&self, endpoint: &ModelPlan) -> Option<Price> {
        endpoint.price.or_else(|| self.prices.of(endpoint))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use ostler_kernel::{Failure, step::Usage};

    use super::*;
    use crate::{Completion, Finish};

    struct Broken(Usage);

    impl Gateway for Broken {
        fn stream(&self, _: ModelRequest) -> Parts {
            let failure = Failure::transient("model_stream_cut", "cut").with_spent(self.0);
            Box::pin(stream::once(async { Err(failure) }))
        }
    }

    struct Used(Option<Usage>);

    impl Gateway for Used {
        fn stream(&self, _: ModelRequest) -> Parts {
            let completion = Completion {
                blocks: vec![],
                finish: Finish::Stop,
                usage: self.0,
                identity: Default::default(),
            };
            Box::pin(stream::once(async { Ok(Part::Done(completion)) }))
        }
    }

    fn request(model: &str, price: Option<Price>) -> ModelRequest {
        let endpoint =
            ModelPlan { provider: "openai".into(), model: model.into(), price, ..ModelPlan::default() };
        ModelRequest {
            endpoint,
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        }
    }

    fn cost(usage: Option<Usage>, model: &str, price: Option<Price>) -> Option<u64> {
        let mut parts = Priced::new(Used(usage), Prices::standard()).stream(request(model, price));
        let Some(Some(Ok(Part::Done(completion)))) = parts.next().now_or_never() else { panic!("no answer") };
        completion.usage.and_then(|usage| usage.cost_micro_usd)
    }

    #[test]
    fn an_answer_that_broke_off_costs_what_was_said_of_it() {
        let usage = Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() };
        let mut parts = Priced::new(Broken(usage), Prices::standard()).stream(request("gpt-4o", None));
        let Some(Some(Err(failure))) = parts.next().now_or_never() else { panic!("an answer") };
        assert_eq!(failure.spent.and_then(|spent| spent.cost_micro_usd), Some(3_500));
    }

    #[test]
    fn a_call_costs_what_its_endpoint_says_or_the_table_and_else_is_unknown() {
        let usage = Some(Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() });
        assert_eq!(cost(usage, "gpt-4o", None), Some(3_500));
        let own = Price { input: 1_000_000, output: 0, cache_read: None, cache_write: None };
        assert_eq!(cost(usage, "gpt-4o", Some(own)), Some(1_000));
        assert_eq!(cost(usage, "unheard-of", None), None);
        assert_eq!(cost(None, "gpt-4o", None), None);
    }
}
