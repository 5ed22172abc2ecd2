//! The attribute `#[port]`, which makes a port of a block of access patterns. Knows no table.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::token::Paren;
use syn::{
    Attribute, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, PatType, ReturnType, Token,
    Visibility, parenthesized,
};

/// Makes a port of a block of access patterns: `#[port(EditTariffs, UpdateItem(Tariffs), DeleteItem(Tariffs))]`.
///
/// The first word names the port. The permissions follow: actions, each with its targets. The `pub` functions of the
/// block are the functions of the port; all others are helpers.
///
/// The block stays as it is. The attribute adds
///
/// - a trait with the permissions and the functions, with an `Invocation` as the last argument of each function,
/// - the implementation of the trait for every `Db`, by the block,
/// - the functions as methods of a `Session` with a store that has the port.
///
/// Code that has only a port cannot call another port or an operation of `Db`, because `Db` is not a supertrait of a
/// port.
#[proc_macro_attribute]
pub fn port(
    row: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let block: TokenStream = block.into();
    let port = port_of(row.into(), block.clone()).unwrap_or_else(syn::Error::into_compile_error);
    quote! { #block #port }.into()
}

/// The error of a row without permissions, or with an action without targets.
const NEEDED: &str = "a port needs actions with their targets, such as `Query(Devices, Rooms)`";

/// The name of a port, and its permissions.
struct Row {
    name: Ident,
    permissions: Vec<TokenStream>,
}

impl Parse for Row {
    fn parse(row: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = row.parse()?;
        let mut permissions = Vec::new();
        while row.parse::<Option<Token![,]>>()?.is_some() && !row.is_empty() {
            let action: Ident = row.parse()?;
            if !row.peek(Paren) {
                return Err(syn::Error::new(action.span(), NEEDED));
            }

            let targets;
            parenthesized!(targets in row);
            let targets = Punctuated::<Ident, Token![,]>::parse_terminated(&targets)?;
            let permission = |target| quote! { (crate::Action::#action, crate::Target::#target) };
            permissions.extend(targets.iter().map(permission));
        }

        if permissions.is_empty() {
            return Err(syn::Error::new(name.span(), NEEDED));
        }
        Ok(Self { name, permissions })
    }
}

/// The trait, its implementation, and the methods of a session.
fn port_of(row: TokenStream, block: TokenStream) -> syn::Result<TokenStream> {
    let Row { name, permissions } = syn::parse2(row)?;
    let block: ItemImpl = syn::parse2(block)?;
    let about = comment(&block.attrs);
    let functions = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => Some(function),
        _ => None,
    });
    let functions: Vec<Function> = functions.map(Function::of).collect();
    let declared = functions.iter().map(|function| &function.declared);
    let implemented = functions.iter().map(|function| &function.implemented);
    let of_session = functions.iter().map(|function| &function.of_session);

    Ok(quote! {
        #about
        pub trait #name: Send + Sync {
            /// The permissions that the port needs.
            const PERMISSIONS: &'static [crate::Permission] = &[#(#permissions),*];

            #(#declared)*
        }

        impl<D: crate::db::Db> #name for D {
            #(#implemented)*
        }

        impl<S: #name> crate::Session<'_, S> {
            #(#of_session)*
        }
    })
}

/// A function of a port: in the trait, in its implementation, and as a method of a session.
struct Function {
    declared: TokenStream,
    implemented: TokenStream,
    of_session: TokenStream,
}

impl Function {
    fn of(function: &ImplItemFn) -> Self {
        let (about, signature) = (comment(&function.attrs), &function.sig);
        let (name, asyncness) = (&signature.ident, &signature.asyncness);
        let output = match &signature.output {
            ReturnType::Type(_, output) => quote! { #output },
            ReturnType::Default => quote! { () },
        };
        let returned = quote! { impl ::std::future::Future<Output = #output> + Send };
        let (returned, wait) = match asyncness {
            Some(_) => (&returned, quote! { .await }),
            None => (&output, TokenStream::new()),
        };

        let arguments = signature.inputs.iter().filter_map(|argument| match argument {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        });
        let arguments: Vec<&PatType> = arguments.collect();
        let names: Vec<_> = arguments.iter().map(|argument| &argument.pat).collect();
        let head = quote! { fn #name(&self, #(#arguments,)* invocation: &crate::Invocation) };

        let declared = quote! { #about #head -> #returned; };
        let implemented = quote! {
            #asyncness #head -> #output {
                crate::patterns::Patterns::new(self, invocation).#name(#(#names),*) #wait
            }
        };
        let of_session = quote! {
            #about
            pub fn #name(self, #(#arguments),*) -> #returned {
                self.store.#name(#(#names,)* self.invocation)
            }
        };

        Self { declared, implemented, of_session }
    }
}

/// The comment of a block or a function.
fn comment(attributes: &[Attribute]) -> TokenStream {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    quote! { #(#lines)* }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(row: &str, block: &str) -> Result<String, String> {
        let parsed = |text: &str| text.parse().expect("tokens");
        let port = port_of(parsed(row), parsed(block)).map_err(|error| error.to_string())?;
        Ok(port.to_string().replace(' ', ""))
    }

    #[test]
    fn a_port_has_the_public_functions_of_its_block_and_no_helper() {
        let block =
            "impl Patterns { pub async fn told(self, id: &Id) -> Found {} fn help(self) {} }";
        let port = made("ReadTold, Query(Told, Waiting), GetItem(Told)", block).expect("a port");
        assert!(port.contains("pubtraitReadTold:Send+Sync"), "{port}");
        assert!(port.contains("pubfntold(self,id:&Id)->impl::std::future::Future"), "{port}");
        assert_eq!(port.matches("(crate::Action::").count(), 3, "{port}");
        assert!(!port.contains("help"), "{port}");
    }

    #[test]
    fn a_port_without_permissions_is_refused() {
        for row in ["ReadTold", "ReadTold, Query", "ReadTold, Query()"] {
            assert_eq!(made(row, "impl Patterns {}"), Err(NEEDED.to_owned()), "{row}");
        }
        let gap = made("ReadTold Query(Told)", "impl Patterns {}");
        assert!(gap.is_err(), "{gap:?}");
    }
}
