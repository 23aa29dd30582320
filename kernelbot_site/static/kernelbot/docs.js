"use strict";
SwaggerUIBundle({
  dom_id: "#docs",
  url: document.getElementById("docs").dataset.schema,
  supportedSubmitMethods: [], // for reading: an operator's token does not belong in here
});
