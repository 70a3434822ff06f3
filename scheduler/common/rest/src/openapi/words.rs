//! The comments of the contracts, as descriptions.

use prost_reflect::{DescriptorPool, FieldDescriptor, MessageDescriptor, MethodDescriptor};
use std::collections::HashMap;

/// All comments, by file and path.
#[derive(Debug)]
pub(super) struct Comments {
    texts: HashMap<(String, Vec<i32>), String>,
    services: Vec<(String, String)>,
}

impl Comments {
    pub(super) fn of(pool: &DescriptorPool) -> Self {
        let mut texts = HashMap::new();
        for file in pool.files() {
            let proto = file.file_descriptor_proto();
            for location in proto
                .source_code_info
                .iter()
                .flat_map(|info| &info.location)
            {
                let text = location.leading_comments();
                if !text.is_empty() {
                    let key = (file.name().to_owned(), location.path.clone());
                    texts.insert(key, one_line(text));
                }
            }
        }
        // What a service is for stands at the top of its file: the comment of `syntax`, field 12.
        let services = pool.services().map(|service| {
            let key = (service.parent_file().name().to_owned(), vec![12]);
            let text = texts.get(&key).cloned().unwrap_or_default();
            (service.name().to_owned(), text)
        });
        let services = services.collect();
        Self { texts, services }
    }

    fn at(&self, file: &str, path: &[i32]) -> String {
        let key = (file.to_owned(), path.to_vec());
        self.texts.get(&key).cloned().unwrap_or_default()
    }

    /// The services with what they are for.
    pub(super) fn services(&self) -> impl Iterator<Item = &(String, String)> {
        self.services.iter()
    }

    pub(super) fn of_method(&self, method: &MethodDescriptor) -> String {
        self.at(method.parent_service().parent_file().name(), method.path())
    }

    pub(super) fn of_field(&self, field: &FieldDescriptor) -> String {
        self.at(field.parent_file().name(), field.path())
    }

    pub(super) fn of_message(&self, message: &MessageDescriptor) -> String {
        self.at(message.parent_file().name(), message.path())
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first sentence of a description, or the words of a call's name.
pub(super) fn summary(name: &str, description: &str) -> String {
    if let Some((first, _)) = description.split_once(". ") {
        return format!("{first}.");
    }
    if !description.is_empty() {
        return description.to_owned();
    }
    let mut words = String::new();
    for (place, letter) in name.char_indices() {
        if place > 0 && letter.is_ascii_uppercase() {
            words.push(' ');
            words.push(letter.to_ascii_lowercase());
        } else {
            words.push(letter);
        }
    }
    words + "."
}
