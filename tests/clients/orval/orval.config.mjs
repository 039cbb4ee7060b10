// `ci/clients` sets the variables.
export default {
  vitrine: {
    input: process.env.VITRINE_DOCUMENT,
    output: { target: "src/api.ts", client: "fetch", baseUrl: process.env.VITRINE_BASE },
  },
};
