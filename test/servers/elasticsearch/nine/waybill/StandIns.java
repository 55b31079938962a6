package waybill;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter;
import org.elasticsearch.Build;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.index.analysis.AbstractTokenFilterFactory;
import org.elasticsearch.index.analysis.PreConfiguredTokenizer;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.mapper.KeywordFieldMapper;
import org.elasticsearch.index.mapper.Mapper;
import org.elasticsearch.index.mapper.TextFieldMapper;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.ingest.AbstractProcessor;
import org.elasticsearch.ingest.ConfigurationUtils;
import org.elasticsearch.ingest.IngestDocument;
import org.elasticsearch.ingest.Processor;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.IngestPlugin;
import org.elasticsearch.plugins.MapperPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.xcontent.XContentBuilder;

/** Stands in for what sink, templates and security need of modules that are not published. */
public class StandIns extends Plugin implements ActionPlugin, AnalysisPlugin, IngestPlugin, MapperPlugin {

    /** Of the module rest-root: which server this is. */
    @Override
    public Collection<RestHandler> getRestHandlers(RestHandlersServices services, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features) {
        return List.of(new Root());
    }

    private static final class Root extends BaseRestHandler {
        @Override
        public String getName() {
            return "root";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.GET, "/"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
            return channel -> {
                Build build = Build.current();
                XContentBuilder answer = channel.newBuilder().startObject().startObject("version");
                answer.field("number", build.qualifiedVersion()).field("build_flavor", build.flavor());
                channel.sendResponse(new RestResponse(RestStatus.OK, answer.endObject().field("tagline", "You Know, for Search").endObject()));
            };
        }
    }

    /** Of the module analysis-common: what the mapping of the security index names. */
    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of("pattern_capture", AnalysisPlugin.requiresAnalysisSettings((index, environment, name, settings) -> {
            Pattern[] patterns = settings.getAsList("patterns").stream().map(Pattern::compile).toArray(Pattern[]::new);
            boolean keepsOriginal = settings.getAsBoolean("preserve_original", true);
            return new AbstractTokenFilterFactory(name) {
                @Override
                public TokenStream create(TokenStream tokens) {
                    return new PatternCaptureGroupTokenFilter(tokens, keepsOriginal, patterns);
                }
            };
        }), "unique", (index, environment, name, settings) -> new AbstractTokenFilterFactory(name) {
            @Override
            public TokenStream create(TokenStream tokens) {
                return new RemoveDuplicatesTokenFilter(tokens);
            }
        });
    }

    @Override
    public List<PreConfiguredTokenizer> getPreConfiguredTokenizers() {
        Supplier<Tokenizer> make = UAX29URLEmailTokenizer::new;
        return List.of(PreConfiguredTokenizer.singleton("uax_url_email", make));
    }

    /**
     * Of the module ingest-common: `set` with a value (which may be the time of ingestion) or with `copy_from`, `remove`, `drop`, `fail`, and
     * `reroute` with a destination; each with `if_equals: {field, value}` in place of a script. They use the server's own document.
     */
    @Override
    public Map<String, Processor.Factory> getProcessors(Processor.Parameters parameters) {
        return Map.of("set", factory("set", (settings, tag) -> {
            String field = ConfigurationUtils.readStringProperty("set", tag, settings, "field");
            String from = ConfigurationUtils.readOptionalStringProperty("set", tag, settings, "copy_from");
            String value = from == null ? ConfigurationUtils.readStringProperty("set", tag, settings, "value") : null;
            return document -> {
                boolean isTime = "{{{_ingest.timestamp}}}".equals(value);
                Object given = from == null ? value : document.getFieldValue(from, Object.class);
                document.setFieldValue(field, isTime ? String.valueOf(document.getIngestMetadata().get("timestamp")) : given);
                return document;
            };
        }), "remove", factory("remove", (settings, tag) -> {
            String field = ConfigurationUtils.readStringProperty("remove", tag, settings, "field");
            return document -> {
                document.removeField(field);
                return document;
            };
        }), "drop", factory("drop", (settings, tag) -> document -> null), "fail", factory("fail", (settings, tag) -> {
            String message = ConfigurationUtils.readStringProperty("fail", tag, settings, "message");
            return document -> {
                throw new RuntimeException(message);
            };
        }), "reroute", factory("reroute", (settings, tag) -> {
            String destination = ConfigurationUtils.readStringProperty("reroute", tag, settings, "destination");
            return document -> {
                document.reroute(destination);
                return document;
            };
        }));
    }

    private interface Step {
        IngestDocument apply(IngestDocument document);
    }

    private interface Steps {
        Step of(Map<String, Object> settings, String tag);
    }

    private static Processor.Factory factory(String type, Steps steps) {
        return (factories, tag, description, settings, project) -> {
            Map<String, Object> condition = ConfigurationUtils.readOptionalMap(type, tag, settings, "if_equals");
            Step step = steps.of(settings, tag);
            return new AbstractProcessor(tag, description) {
                @Override
                public String getType() {
                    return type;
                }

                @Override
                public IngestDocument execute(IngestDocument document) {
                    if (condition == null) return step.apply(document);
                    Object found = document.getFieldValue(String.valueOf(condition.get("field")), Object.class, true);
                    return String.valueOf(condition.get("value")).equals(String.valueOf(found)) ? step.apply(document) : document;
                }
            };
        };
    }

    /** Of mapper-extras and constant-keyword: the nearest type of the server. */
    @Override
    public Map<String, Mapper.TypeParser> getMappers() {
        return Map.of("match_only_text", TextFieldMapper.PARSER, "constant_keyword", KeywordFieldMapper.PARSER);
    }
}
