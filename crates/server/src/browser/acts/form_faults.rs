//! Faults of a form's fields: all of them are reported together.

use std::fmt;

use anyhow::bail;
use vitrine_store::StoreError;

/// Faults of a form, each beginning with the label of its field.
#[derive(Debug, Clone, Default)]
pub(super) struct FormFaults(pub(super) Vec<String>);

impl FormFaults {
    /// Returns a value that was read; keeps the fault if there is one.
    pub(super) fn take<T>(&mut self, read: Result<T, impl fmt::Display>) -> Option<T> {
        read.map_err(|fault| self.0.push(fault.to_string())).ok()
    }

    /// Returns a value that was read with the help of the store; keeps all faults of the form.
    ///
    /// # Errors
    ///
    /// If the store failed.
    pub(super) fn take_read<T>(&mut self, read: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
        let error = match read {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        if error.chain().any(<dyn std::error::Error>::is::<StoreError>) {
            return Err(error);
        }
        match error.downcast::<Self>() {
            Ok(Self(faults)) => self.0.extend(faults),
            Err(fault) => self.0.push(format!("{fault:#}")),
        }
        Ok(None)
    }

    /// Adds a fault.
    pub(super) fn add(&mut self, fault: &str) {
        self.0.push(fault.to_owned());
    }

    /// Returns nothing if there is no fault.
    ///
    /// # Errors
    ///
    /// If there are faults, with all of them.
    pub(super) fn check(self) -> anyhow::Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => bail!(self),
        }
    }
}

impl fmt::Display for FormFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for FormFaults {}
