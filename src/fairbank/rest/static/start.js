// validatorUrl: the bundle would else send the document's address to a public service.
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null, docExpansion: "list" });
