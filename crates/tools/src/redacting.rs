//! A toolbox behind which nobody gets to see a secret that this process knows: not in a result, not in what went wrong.

use async_trait::async_trait;
use ostler_kernel::Failure;
use ostler_secrets::Redactor;

use crate::{ToolRequest, Toolbox};

pub struct Redacting<T> {
    inner: T,
    redactor: Redactor,
}

impl<T> Redacting<T> {
    pub fn new(inner: T, redactor: Redactor) -> Self {
        Self { inner, redactor }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Redacting<T> {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        match self.inner.call(request).await {
            Ok(mut result) => {
                self.redactor.clean(&mut result);
                Ok(result)
            }
            Err(mut failure) => {
                failure.message = self.redactor.hidden_words(&failure.message);
                Err(failure)
            }
        }
    }
}
